// The lowest dirty rows of a range of positions, found on a device without asking the host: the
// range is cut into kSelectBins equal parts, the rows of each are counted, and the part in which
// the last wanted row lies is the next pass's range. Positions are spread evenly, so that two or
// three passes do, and those behind do nothing; each reads a byte of every slot, and the position
// of a dirty one.
// Tested by tests/storage/gpu/device/lanes_test.cc
#ifndef STRATA_STORAGE_GPU_SELECT_H_
#define STRATA_STORAGE_GPU_SELECT_H_

#include <cstddef>
#include <cstdint>

#include "ops/cuda/kernel/kernel.h"
#include "ops/inline.h"
#include "storage/gpu/control.h"
#include "storage/gpu/slots.h"

namespace strata::storage::gpu {

inline constexpr uint32_t kSelectBits = 11;
inline constexpr uint32_t kSelectBins = 1u << kSelectBits;

// In the device's memory. From the last pass on, the rows wanted are those of the first range up to
// `high`.
struct GpuSelect {
  uint64_t low = 0, high = 0;  // the last wanted row is one of these positions
  uint32_t wanted = 0;         // rows from low on; > 0
  uint32_t done = 0;           // 1: there are as many up to `high`, or fewer in the first range
};

// Bits of the distance of a range's ends.
STRATA_HD uint32_t SelectRangeBits(uint64_t distance) {
  if (distance == 0) return 0;
#ifdef __CUDA_ARCH__
  return 64 - static_cast<uint32_t>(__clzll(static_cast<long long>(distance)));
#else
  return 64 - static_cast<uint32_t>(__builtin_clzll(distance));
#endif
}
// Parts of a range are 2^shift positions.
STRATA_HD uint32_t SelectShift(uint64_t distance) {
  const uint32_t bits = SelectRangeBits(distance);
  return bits > kSelectBits ? bits - kSelectBits : 0;
}
// After so many passes a part is a position, which one row has at most.
inline uint32_t SelectPasses(uint64_t distance) {
  uint32_t passes = 1;
  for (uint32_t shift = SelectShift(distance); shift > 0; ++passes) {
    shift = shift > kSelectBits ? shift - kSelectBits : 0;
  }
  return passes;
}

// Adds to a counter that others add to: the sum does not depend on their order.
STRATA_HD void AddToCount(uint32_t* count, uint32_t x) {
#ifdef __CUDA_ARCH__
  atomicAdd(count, x);
#else
  __atomic_fetch_add(count, x, __ATOMIC_RELAXED);
#endif
}

// Of eight slots from `first` on, a multiple of 8, those of dirty rows within [low, high]: a bit
// each.
STRATA_HD uint32_t DirtyOfEight(const GpuSlots& t, size_t first, uint64_t low, uint64_t high) {
  uint32_t dirty = 0;
  for (uint64_t word = EightBytes(t.flags, first) & 0x0101010101010101ull * kGpuDirty; word != 0;
       word &= word - 1) {
    const int at = LowestByte(word);
    const uint64_t position = t.positions[first + at];
    if (t.control[first + at] != 0 && low <= position && position <= high) dirty |= 1u << at;
  }
  return dirty;
}

// Counts the dirty rows of each part of select's range; an item is a run of slots.
struct CountParts {
  static constexpr uint32_t kLanes = ops::gpu::kBlockLanes;
  static constexpr uint32_t kBlockThreads = 256;
  static constexpr uint32_t kItemSlots = 1u << 15;
  GpuSlots t;
  uint32_t slots;  // a multiple of 8
  const GpuSelect* select;
  uint32_t* bins;  // (kSelectBins), 0

  static uint64_t Items(uint32_t slots) { return (uint64_t{slots} + kItemSlots - 1) / kItemSlots; }
  STRATA_HD_MEMBER uint32_t shared_bytes() const { return kSelectBins * sizeof(uint32_t); }
  STRATA_HD_MEMBER uint64_t items() const {
    return select->done != 0 ? 0 : (uint64_t{slots} + kItemSlots - 1) / kItemSlots;
  }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group& group, uint64_t item) const {
    uint32_t* const counts = static_cast<uint32_t*>(group.shared());
    for (uint32_t b = group.lane(); b < kSelectBins; b += group.lanes()) counts[b] = 0;
    group.Sync();
    const uint64_t low = select->low, high = select->high;
    const uint32_t shift = SelectShift(high - low);
    const uint64_t begin = item * kItemSlots;
    const uint64_t end = begin + kItemSlots < slots ? begin + kItemSlots : slots;
    for (uint64_t at = begin + 8 * group.lane(); at < end; at += 8 * group.lanes()) {
      for (uint32_t dirty = DirtyOfEight(t, at, low, high); dirty != 0; dirty &= dirty - 1) {
        const uint64_t slot = at + LowestBit(dirty);
        AddToCount(&counts[(t.positions[slot] - low) >> shift], 1);
      }
    }
    group.Sync();
    for (uint32_t b = group.lane(); b < kSelectBins; b += group.lanes()) {
      if (counts[b] != 0) AddToCount(&bins[b], counts[b]);
    }
  }
  // REQUIRES: bits != 0.
  STRATA_HD_MEMBER static uint32_t LowestBit(uint32_t bits) {
#ifdef __CUDA_ARCH__
    return static_cast<uint32_t>(__ffs(static_cast<int>(bits)) - 1);
#else
    return static_cast<uint32_t>(__builtin_ctz(bits));
#endif
  }
};

// Goes on with the part in which the last wanted row lies; bins are 0 again.
struct ChoosePart {
  static constexpr uint32_t kLanes = 32;
  GpuSelect* select;
  uint32_t* bins;

  STRATA_HD_MEMBER uint64_t items() const { return select->done != 0 ? 0 : 1; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group& group, uint64_t) const {
    const uint64_t low = select->low, high = select->high;
    const uint32_t wanted = select->wanted;
    group.Sync();  // all have read it
    const uint32_t shift = SelectShift(high - low);
    uint32_t before = 0;
    for (uint32_t at = 0; at < kSelectBins; at += group.lanes()) {
      const uint32_t b = at + group.lane();
      const uint32_t rows = bins[b];
      bins[b] = 0;
      const uint32_t through = group.InclusiveSum(rows);
      if (before + through >= wanted && before + through - rows < wanted) {
        const uint64_t first = low + (uint64_t{b} << shift);
        const uint64_t most = (uint64_t{1} << shift) - 1;
        select->low = first;
        select->high = high - first < most ? high : first + most;
        select->wanted = wanted - (before + through - rows);
        select->done = before + through == wanted ? 1 : 0;
      }
      before += group.FromLast(through);
    }
    if (group.lane() == 0 && before < wanted) select->done = 1;
  }
};

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_SELECT_H_
