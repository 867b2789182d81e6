// The threads that work on one item of a kernel, as functors see them: a lane number, how many
// lanes there are, and what lanes exchange. On the device a power of two of neighbouring threads of
// a warp, or a whole block; on the host one lane that does everything. Functors are templates over
// the group, so one source is the device's arithmetic and what host tests run.
// Tested by tests/ops/cuda/rows/lanes_test.cc
#ifndef STRATA_OPS_CUDA_KERNEL_GROUP_H_
#define STRATA_OPS_CUDA_KERNEL_GROUP_H_

#include <cstdint>

#include "ops/inline.h"

namespace strata::ops::gpu {

// The host's: everything by one lane.
struct OneLane {
  static constexpr uint32_t kLanes = 1;
  char* scratch = nullptr;  // the item's shared memory, where the functor asked for it

  STRATA_HD_MEMBER uint32_t lane() const { return 0; }
  STRATA_HD_MEMBER uint32_t lanes() const { return 1; }
  STRATA_HD_MEMBER void* shared() const { return scratch; }
  // Lanes wait for each other; shared memory written before is seen after.
  STRATA_HD_MEMBER void Sync() const {}
  // Of all lanes; every lane gets it.
  STRATA_HD_MEMBER uint32_t Max(uint32_t x) const { return x; }
  STRATA_HD_MEMBER uint32_t Sum(uint32_t x) const { return x; }
  // Of this lane and those before it.
  STRATA_HD_MEMBER uint32_t InclusiveSum(uint32_t x) const { return x; }
  // x of the last lane.
  STRATA_HD_MEMBER uint32_t FromLast(uint32_t x) const { return x; }
  // x of the lane whose number differs by the bits of `mask` < kLanes.
  STRATA_HD_MEMBER float FromXor(float x, uint32_t mask) const { return x; }
  STRATA_HD_MEMBER uint32_t FromXor(uint32_t x, uint32_t mask) const { return x; }
};

#ifdef __CUDACC__

// kWidth neighbouring threads of a warp: 1, 2, 4 .. 32.
template <uint32_t kWidth>
struct WarpLanes {
  static constexpr uint32_t kLanes = kWidth;
  uint32_t lane_ = threadIdx.x % kWidth;
  // The bits of this group's threads in the warp.
  uint32_t members_ = (kWidth == 32 ? 0xffffffffu : (1u << kWidth % 32) - 1u)
                      << (threadIdx.x % 32 / kWidth * kWidth);

  __device__ __forceinline__ uint32_t lane() const { return lane_; }
  __device__ __forceinline__ uint32_t lanes() const { return kWidth; }
  __device__ __forceinline__ void* shared() const { return nullptr; }
  __device__ __forceinline__ void Sync() const { __syncwarp(members_); }
  __device__ __forceinline__ uint32_t Max(uint32_t x) const {
#pragma unroll
    for (uint32_t mask = kWidth / 2; mask > 0; mask /= 2) {
      const uint32_t other = __shfl_xor_sync(members_, x, mask);
      x = other > x ? other : x;
    }
    return x;
  }
  __device__ __forceinline__ uint32_t Sum(uint32_t x) const {
#pragma unroll
    for (uint32_t mask = kWidth / 2; mask > 0; mask /= 2) {
      x += __shfl_xor_sync(members_, x, mask);
    }
    return x;
  }
  __device__ __forceinline__ uint32_t InclusiveSum(uint32_t x) const {
#pragma unroll
    for (uint32_t apart = 1; apart < kWidth; apart *= 2) {
      const uint32_t before = __shfl_up_sync(members_, x, apart, kWidth);
      x += lane_ >= apart ? before : 0;
    }
    return x;
  }
  __device__ __forceinline__ uint32_t FromLast(uint32_t x) const {
    return __shfl_sync(members_, x, kWidth - 1, kWidth);
  }
  __device__ __forceinline__ float FromXor(float x, uint32_t mask) const {
    return __shfl_xor_sync(members_, x, mask);
  }
  __device__ __forceinline__ uint32_t FromXor(uint32_t x, uint32_t mask) const {
    return __shfl_xor_sync(members_, x, mask);
  }
};

// A whole block, with the kernel's dynamic shared memory.
struct BlockLanes {
  char* scratch;

  __device__ __forceinline__ uint32_t lane() const { return threadIdx.x; }
  __device__ __forceinline__ uint32_t lanes() const { return blockDim.x; }
  __device__ __forceinline__ void* shared() const { return scratch; }
  __device__ __forceinline__ void Sync() const { __syncthreads(); }
};

#endif  // __CUDACC__

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_KERNEL_GROUP_H_
