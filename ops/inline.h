// Small functions that kernels of any instruction set, ordinary code and device code share.
#ifndef STRATA_OPS_INLINE_H_
#define STRATA_OPS_INLINE_H_

// Internal linkage and always inlined: a shared copy could be the AVX-512 build's (isa.bzl).
#ifdef __CUDACC__
#define STRATA_HD __host__ __device__ static __forceinline__
#else
#define STRATA_HD static inline __attribute__((always_inline, unused))
#endif

#endif  // STRATA_OPS_INLINE_H_
