// Kernels made of functors. A functor is a trivially copyable struct with
//   static constexpr uint32_t kLanes     lanes that work on one item: 1 .. 32 of a warp, or
//                                        kBlockLanes: a block of `threads` threads
//   uint64_t items() const               how many items; may read a count in device memory
//   void operator()(const Group&, uint64_t item) const     a template over the group (group.h)
// Kernels are grid-stride loops: a grid of any size does all items.
// Tested by tests/ops/cuda/rows/lanes_test.cc, tests/ops/cuda/elements_test.cc
#ifndef STRATA_OPS_CUDA_KERNEL_KERNEL_H_
#define STRATA_OPS_CUDA_KERNEL_KERNEL_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/kernel/group.h"

namespace strata::ops::gpu {

inline constexpr uint32_t kBlockLanes = 0;
inline constexpr uint32_t kThreads = 256;  // of a block of warp groups

// Where nvcc and the host's compiler have both compiled a functor, each keeps its own copies.
#ifdef __CUDACC__
inline namespace by_nvcc {
#else
inline namespace by_host {
#endif

#ifdef __CUDACC__

// At least one block fits a multiprocessor: the compiler takes the registers that a functor wants,
// rather than spill a few for the sake of one block more.
template <typename Functor>
__global__ void __launch_bounds__(kThreads, 1)
    ForEachGroup(const __grid_constant__ Functor functor) {
  const WarpLanes<Functor::kLanes> group;
  constexpr uint64_t kGroups = kThreads / Functor::kLanes;
  const uint64_t items = functor.items();
  for (uint64_t item = blockIdx.x * kGroups + threadIdx.x / Functor::kLanes; item < items;
       item += gridDim.x * kGroups) {
    functor(group, item);
  }
}

template <typename Functor>
__global__ void __launch_bounds__(kThreads, 1)
    ForEachBlock(const __grid_constant__ Functor functor) {
  extern __shared__ __align__(16) char scratch[];
  const BlockLanes group{scratch};
  const uint64_t items = functor.items();
  for (uint64_t item = blockIdx.x; item < items; item += gridDim.x) {
    functor(group, item);
    __syncthreads();  // the next item uses the same shared memory
  }
}

#endif  // __CUDACC__

// What the host runs for a functor: itself, or what it names as OnHost, a functor of the same
// bytes.
template <typename Functor, typename = void>
struct OnHostOf {
  using type = Functor;
};
template <typename Functor>
struct OnHostOf<Functor, std::void_t<typename Functor::OnHost>> {
  using type = typename Functor::OnHost;
};

template <typename Functor>
uint64_t ItemsOnHost(const void* functor) {
  return static_cast<const Functor*>(functor)->items();
}

template <typename Functor>
void RunOnHost(const void* functor, uint64_t begin, uint64_t end) {
  const Functor& f = *static_cast<const Functor*>(functor);
  OneLane lane;
  std::vector<char> scratch;
  if constexpr (Functor::kLanes == kBlockLanes) {
    // 16 bytes more, to begin at a multiple of 16.
    scratch.resize(f.shared_bytes() + 16);
    const auto address = reinterpret_cast<uintptr_t>(scratch.data());
    lane.scratch = scratch.data() + (16 - address % 16) % 16;
  }
  for (uint64_t item = begin; item < end; ++item) f(lane, item);
}

template <typename Functor>
Kernel KernelOf(const char* name) {
  static_assert(std::is_trivially_copyable_v<Functor>);
  static_assert(sizeof(Functor) <= 4096, "a kernel's parameters");
  using Host = typename OnHostOf<Functor>::type;
  static_assert(sizeof(Host) == sizeof(Functor));
  Kernel kernel;
  kernel.items = &ItemsOnHost<Host>;
  kernel.run = &RunOnHost<Host>;
  kernel.functor_bytes = sizeof(Functor);
  kernel.name = name;
#ifdef __CUDACC__
  if constexpr (Functor::kLanes == kBlockLanes) {
    kernel.entry = reinterpret_cast<const void*>(&ForEachBlock<Functor>);
  } else {
    kernel.entry = reinterpret_cast<const void*>(&ForEachGroup<Functor>);
  }
#endif
  return kernel;
}

// Launches a functor over at most `most_items` items: the grid's size follows from that and from
// the device, never from the count. Does nothing for 0.
template <typename Functor>
absl::Status LaunchOver(CudaApi& api, const char* name, const Functor& functor, uint64_t most_items,
                        StreamHandle stream) {
  if (most_items == 0) return absl::OkStatus();
  // What fills a multiprocessor: 2048 threads; twice that, so that its end is even.
  LaunchShape shape;
  uint64_t blocks = most_items;
  uint64_t full = 0;
  if constexpr (Functor::kLanes == kBlockLanes) {
    shape.threads = Functor::kBlockThreads;
    shape.shared_bytes = functor.shared_bytes();
    full = uint64_t{api.properties().multiprocessors} * (4096 / Functor::kBlockThreads);
  } else {
    constexpr uint64_t kGroups = kThreads / Functor::kLanes;
    shape.threads = kThreads;
    blocks = (most_items + kGroups - 1) / kGroups;
    full = uint64_t{api.properties().multiprocessors} * (4096 / kThreads);
  }
  shape.blocks = static_cast<uint32_t>(std::min(blocks, full));
  return api.Launch(KernelOf<Functor>(name), shape, &functor, stream);
}

}  // namespace by_nvcc or by_host

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_KERNEL_KERNEL_H_
