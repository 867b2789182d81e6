// The slots of a GPU table as plain memory of a host or of a device, and where a position belongs.
//
// A bucket has 32, 64 or 128 slots. Slot number = bucket * slots of a bucket + slot in the bucket;
// everything about a slot lies at its number in arrays of their own, so that a search reads the
// control bytes of one bucket, then one position. Any 64-bit position is legal: that a slot is
// taken is told by its control byte alone.
// Tested by tests/storage/gpu/bucket_test.cc
#ifndef STRATA_STORAGE_GPU_SLOTS_H_
#define STRATA_STORAGE_GPU_SLOTS_H_

#include <cstdint>

#include "ops/inline.h"

namespace strata::storage::gpu {

inline constexpr uint32_t kNoGpuSlot = ~uint32_t{0};

// Flags of a row.
enum GpuFlag : uint8_t {
  kGpuDirty = 1,  // differs from the table below, or is not there
  kGpuBelow = 2,  // the table below has a version of it
  kGpuHeld = 4,   // by the open Resolve
  kGpuRead = 8,   // read, and not updated since
};

// What a row that left is remembered by (lrfu). score 0: free.
struct GpuGhost {
  uint16_t fingerprint;
  uint16_t score;
};

// Trivially copyable, non-owning. Aligned as GpuShape (shape.h) lays it out.
struct GpuSlots {
  uint32_t buckets = 0;
  uint32_t stride = 0;            // bytes from row to row: a multiple of 32
  uint8_t* rows = nullptr;        // (slots, stride)
  uint8_t* staged = nullptr;      // (staging places, stride): rows that left and are not below yet
  uint64_t* positions = nullptr;  // (slots)
  uint16_t* scores = nullptr;     // (slots); 0: no row
  GpuGhost* ghosts = nullptr;     // (slots), or null: not lrfu
  uint8_t* control = nullptr;     // (slots): 0 free, else digest of the position
  uint8_t* pins = nullptr;        // (slots): calls of Pin that hold the row
  uint8_t* flags = nullptr;       // (slots): GpuFlag
  uint16_t* gains = nullptr;      // (kLrfuFar), or null: not lrfu
};

// The low 40 bits of a position, mixed by an odd multiplier: those are uniform within any shard
// (the top bits name the partition), and neighbours, which dense tables have, spread.
inline constexpr uint64_t kGpuMixer = 0x9e3779b97f4a7c15ull;
STRATA_HD uint64_t GpuMix(uint64_t position) { return (position * kGpuMixer) & 0xffffffffffull; }
STRATA_HD uint32_t GpuBucketOf(uint64_t position, uint32_t buckets) {
  return static_cast<uint32_t>((GpuMix(position) >> 8) * buckets >> 32);
}
// One of 255 values: in a full bucket of 64, one search in four meets another position's byte that
// is the same, and reads that position too.
STRATA_HD uint8_t GpuControlOf(uint64_t position) {
  const auto digest = static_cast<uint8_t>(GpuMix(position));
  return digest != 0 ? digest : uint8_t{1};
}

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_SLOTS_H_
