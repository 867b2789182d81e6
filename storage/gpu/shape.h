// How large a GPU table's parts are, and how they lie in one block of the device's memory.
// Tested by tests/storage/gpu/device/look_up_test.cc
// Tested by tests/storage/gpu/device/lanes_test.cc
#ifndef STRATA_STORAGE_GPU_SHAPE_H_
#define STRATA_STORAGE_GPU_SHAPE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "storage/eviction/kind.h"
#include "storage/gpu/slots.h"

namespace strata::storage::gpu {

// Bytes, for b buckets of s slots and p staging places, with stride = row_bytes rounded up to 32:
//   b * s * stride          rows
//   p * stride              staging places: dirty rows that left and wait to be written below
//   b * s * 13              position 8, score 2, control, pins and flags 1 each
//   b * s * 4               ghosts, of lrfu
//   2 * kLrfuFar            lrfu's table of gains
// each of the nine arrays rounded up to kAlign.
struct GpuShape {
  static constexpr size_t kAlign = 256;
  // Staging takes at most a sixteenth of the limit, between these bounds.
  static constexpr uint32_t kFewestPlaces = 16;
  static constexpr uint32_t kMostPlaces = uint32_t{1} << 16;
  // Slot numbers above it name rows that have no slot (table.h).
  static constexpr uint64_t kMostSlots = uint64_t{1} << 31;

  size_t row_bytes = 0;
  uint32_t bucket_slots = 64;  // 32, 64 or 128
  EvictionKind eviction = EvictionKind::kLrfu;
  uint32_t buckets = 0;
  uint32_t places = 0;

  size_t stride() const { return (row_bytes + 31) / 32 * 32; }
  size_t slots() const { return size_t{buckets} * bucket_slots; }
  uint64_t bytes() const;
  // The arrays in `memory`, which has bytes() bytes, aligned to kAlign.
  GpuSlots At(uint8_t* memory) const;
};

// The least limit of a table: that of one bucket and kFewestPlaces.
uint64_t MinimumHbmBytes(size_t row_bytes, uint32_t bucket_slots, EvictionKind eviction);

// The shape with the most buckets in `limit_bytes`. INVALID_ARGUMENT names the option, its value
// and its limit.
absl::StatusOr<GpuShape> GpuShapeFor(uint64_t limit_bytes, size_t row_bytes, uint32_t bucket_slots,
                                     EvictionKind eviction);

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_SHAPE_H_
