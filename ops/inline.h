// Small functions that kernels of any instruction set, ordinary code and device code share.
// Tested by tests/ops/exact_math_test.cc
#ifndef STRATA_OPS_INLINE_H_
#define STRATA_OPS_INLINE_H_

// Internal linkage and always inlined: a shared copy could be the AVX-512 build's (isa.bzl).
// Members of classes say STRATA_HD_MEMBER, and large functions that are better called
// STRATA_HD_CALLED.
#ifdef __CUDACC__
#define STRATA_HD __host__ __device__ static __forceinline__
#define STRATA_HD_MEMBER __host__ __device__ __forceinline__
#define STRATA_HD_CALLED __host__ __device__ static __noinline__
#else
#define STRATA_HD static inline __attribute__((always_inline, unused))
#define STRATA_HD_MEMBER inline __attribute__((always_inline))
#define STRATA_HD_CALLED static __attribute__((noinline))
#endif

// Before a loop: unrolled in device code, where arrays that a loop indexes live in registers only
// so.
#ifdef __CUDA_ARCH__
#define STRATA_UNROLL _Pragma("unroll")
#else
#define STRATA_UNROLL
#endif

#endif  // STRATA_OPS_INLINE_H_
