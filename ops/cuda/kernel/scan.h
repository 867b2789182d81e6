// Exclusive sums of integers that functors compute, in three kernels: sums of tiles, sums over
// tiles, and then every element again with what stands before it. The number of elements may be
// known to the device alone.
//
// A Source is a trivially copyable struct with
//   uint32_t items() const                        how many elements; may read device memory
//   uint32_t value(uint32_t i) const              what is summed
//   void emit(uint32_t i, uint32_t before, uint32_t value) const       before: sum of those before
//   i void finish(uint32_t total) const             once
// Tested by tests/ops/cuda/rows/lanes_test.cc
#ifndef STRATA_OPS_CUDA_KERNEL_SCAN_H_
#define STRATA_OPS_CUDA_KERNEL_SCAN_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/kernel/kernel.h"
#include "ops/inline.h"

namespace strata::ops::gpu {

inline constexpr uint32_t kScanTile = 1024;  // elements

// Tiles of `n` elements: the uint32_t of scratch memory that a scan needs.
STRATA_HD uint32_t ScanTiles(uint32_t n) { return n / kScanTile + (n % kScanTile != 0 ? 1 : 0); }

template <typename Source>
struct SumTiles {
  static constexpr uint32_t kLanes = 32;
  Source source;
  uint32_t* tiles;

  STRATA_HD_MEMBER uint64_t items() const { return ScanTiles(source.items()); }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group& group, uint64_t tile) const {
    const uint32_t n = source.items();
    uint32_t sum = 0;
    const uint32_t begin = static_cast<uint32_t>(tile) * kScanTile;
    STRATA_UNROLL
    for (uint32_t at = group.lane(); at < kScanTile; at += group.lanes()) {
      if (begin + at < n) sum += source.value(begin + at);
    }
    sum = group.Sum(sum);
    if (group.lane() == 0) tiles[tile] = sum;
  }
};

// One group: tiles become what stands before them.
template <typename Source>
struct ScanOverTiles {
  static constexpr uint32_t kLanes = 32;
  Source source;
  uint32_t* tiles;

  STRATA_HD_MEMBER uint64_t items() const { return 1; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group& group, uint64_t) const {
    const uint32_t n = ScanTiles(source.items());
    uint32_t before = 0;
    for (uint32_t at = 0; at < n; at += group.lanes()) {
      const uint32_t i = at + group.lane();
      const uint32_t x = i < n ? tiles[i] : 0;
      const uint32_t through = group.InclusiveSum(x);
      if (i < n) tiles[i] = before + through - x;
      before += group.FromLast(through);
    }
    if (group.lane() == 0) source.finish(before);
  }
};

template <typename Source>
struct EmitTiles {
  static constexpr uint32_t kLanes = 32;
  Source source;
  const uint32_t* tiles;

  STRATA_HD_MEMBER uint64_t items() const { return ScanTiles(source.items()); }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group& group, uint64_t tile) const {
    const uint32_t n = source.items();
    const uint32_t begin = static_cast<uint32_t>(tile) * kScanTile;
    uint32_t before = tiles[tile];
    for (uint32_t at = 0; at < kScanTile && begin + at < n; at += group.lanes()) {
      const uint32_t i = begin + at + group.lane();
      const uint32_t x = i < n ? source.value(i) : 0;
      const uint32_t through = group.InclusiveSum(x);
      if (i < n) source.emit(i, before + through - x, x);
      before += group.FromLast(through);
    }
  }
};

// tiles: (ScanTiles(most)) in device memory, overwritten. Asynchronous.
template <typename Source>
absl::Status Scan(CudaApi& api, const char* name, const Source& source, uint32_t most,
                  uint32_t* tiles, StreamHandle stream) {
  const uint32_t n = ScanTiles(most);
  absl::Status status = LaunchOver(api, name, SumTiles<Source>{source, tiles}, n, stream);
  if (status.ok()) {
    status = LaunchOver(api, name, ScanOverTiles<Source>{source, tiles}, 1, stream);
  }
  if (status.ok()) status = LaunchOver(api, name, EmitTiles<Source>{source, tiles}, n, stream);
  return status;
}

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_KERNEL_SCAN_H_
