// What the owner of a bucket of a GPU table does with it. One source for host threads and for
// devices: a bucket has one owner at a time (a host thread, or a warp: group.h), so there are
// no locks, and what happens in a bucket depends on the order of its arrivals alone. A table works
// with every slot taken.
#ifndef STRATA_STORAGE_GPU_BUCKET_H_
#define STRATA_STORAGE_GPU_BUCKET_H_

#include <cstddef>
#include <cstdint>

#include "ops/inline.h"
#include "storage/gpu/control.h"
#include "storage/gpu/ghost.h"
#include "storage/gpu/score.h"
#include "storage/gpu/slots.h"

namespace strata::storage::gpu {

// Lanes that find a position in a bucket together, sixteen slots each.
template <int kSlots>
inline constexpr uint32_t kFindLanes = kSlots / 16;

// The slot number of `position`, or kNoGpuSlot. A lane compares the positions of two slots at a
// time, so that no more than one of very many waits for a second access.
template <int kSlots, typename Group>
STRATA_HD uint32_t FindInBucket(const Group& group, const GpuSlots& t, uint32_t bucket,
                                uint64_t position) {
  const size_t bucket_first = size_t{bucket} * kSlots;
  const uint8_t control = GpuControlOf(position);
  uint32_t found = 0;  // slot number + 1
  for (uint32_t at = 16 * group.lane(); at < kSlots && found == 0; at += 16 * group.lanes()) {
    const size_t first = bucket_first + at;
    uint64_t hits = HitsOfSixteen(SixteenBytes(t.control + first), control);
    while (hits != 0 && found == 0) {
      const size_t one = first + TakeHit(hits);
      const size_t other = hits != 0 ? first + TakeHit(hits) : one;
      const uint64_t at_one = t.positions[one], at_other = t.positions[other];
      if (at_one == position) found = static_cast<uint32_t>(one) + 1;
      if (at_other == position) found = static_cast<uint32_t>(other) + 1;
    }
  }
  return group.Max(found) - 1;
}

// The lowest free slot's number, or kNoGpuSlot.
template <int kSlots, typename Group>
STRATA_HD uint32_t FreeInBucket(const Group& group, const GpuSlots& t, uint32_t bucket) {
  const size_t first = size_t{bucket} * kSlots;
  uint32_t free = 0;  // complement of the slot number
  for (uint32_t at = 8 * group.lane(); at < kSlots && free == 0; at += 8 * group.lanes()) {
    const uint64_t hits = EqualBytes(EightBytes(t.control, first + at), 0);
    if (hits != 0) free = ~static_cast<uint32_t>(first + at + LowestByte(hits));
  }
  return ~group.Max(free);
}

// What a row leaves by: the lowest leaves first. kStays: a free slot, or a row that is pinned or
// held. The slot is that in the bucket.
inline constexpr uint32_t kStays = ~uint32_t{0};
STRATA_HD uint32_t LeavingOrder(const GpuSlots& t, size_t number, uint32_t slot) {
  if (t.control[number] == 0 || t.pins[number] != 0 || (t.flags[number] & kGpuHeld) != 0) {
    return kStays;
  }
  return static_cast<uint32_t>(t.scores[number]) << 8 | slot;
}

// The lowest of eight slots, from `number` and `slot` on, multiples of 8. All that it depends on is
// read at once, before any of it is looked at.
STRATA_HD uint32_t LeavingOfEight(const GpuSlots& t, size_t number, uint32_t slot) {
  const uint64_t controls = EightBytes(t.control, number), pins = EightBytes(t.pins, number);
  const uint64_t flags = EightBytes(t.flags, number);
  const GpuSixteen scores = SixteenBytes(t.scores + number);
  uint32_t lowest = kStays;
  STRATA_UNROLL
  for (uint32_t i = 0; i < 8; ++i) {
    const bool stays = (controls >> 8 * i & 0xff) == 0 || (pins >> 8 * i & 0xff) != 0 ||
                       (flags >> 8 * i & kGpuHeld) != 0;
    const auto score = static_cast<uint32_t>(scores.words[i / 4] >> 16 * (i % 4) & 0xffff);
    const uint32_t order = stays ? kStays : score << 8 | (slot + i);
    if (order < lowest) lowest = order;
  }
  return lowest;
}

// The number of the row that leaves first, or kNoGpuSlot: every row is pinned or held.
template <int kSlots, typename Group>
STRATA_HD uint32_t VictimInBucket(const Group& group, const GpuSlots& t, uint32_t bucket) {
  const size_t first = size_t{bucket} * kSlots;
  uint32_t lowest = kStays;
  for (uint32_t at = 8 * group.lane(); at < kSlots; at += 8 * group.lanes()) {
    const uint32_t order = LeavingOfEight(t, first + at, at);
    if (order < lowest) lowest = order;
  }
  lowest = ~group.Max(~lowest);
  return lowest == kStays ? kNoGpuSlot : static_cast<uint32_t>(first + (lowest & 0xff));
}

// A position that is to have a slot.
struct GpuArrival {
  uint64_t position = 0;
  uint32_t place = 0;  // where a dirty row that has to leave for it is staged; its own
  uint8_t flags = 0;   // of the row that comes
};

// What became of it.
struct GpuPlaced {
  uint32_t slot = kNoGpuSlot;  // kNoGpuSlot: no row of the bucket may leave
  uint8_t left = 0;            // 1: a row had to leave
  uint8_t left_flags = 0;      // its flags; kGpuDirty: it lies in the arrival's place now
  uint64_t left_position = 0;
};

STRATA_HD void SetSlot(const GpuSlots& t, uint32_t slot, const GpuArrival& a, uint16_t score) {
  t.positions[slot] = a.position;
  t.scores[slot] = score;
  t.control[slot] = GpuControlOf(a.position);
  t.pins[slot] = 0;
  t.flags[slot] = a.flags;
}

STRATA_HD void ClearSlot(const GpuSlots& t, uint32_t slot) {
  t.control[slot] = 0;
  t.scores[slot] = 0;
  t.pins[slot] = 0;
  t.flags[slot] = 0;
}

// Puts an arrival into a bucket: into the slot of that position, else a free one, else that of the
// row that leaves first. Its row's bytes are the caller's to move: first those of a dirty row that
// left from the slot to the place, then new ones into the slot. REQUIRES: a.position is of this
// bucket.
template <int kSlots, typename Group>
STRATA_HD GpuPlaced FindOrInsert(const Group& group, const GpuSlots& t, const GpuScoring& scoring,
                                 uint32_t bucket, const GpuArrival& a) {
  GpuPlaced placed;
  placed.slot = FindInBucket<kSlots>(group, t, bucket, a.position);
  if (placed.slot != kNoGpuSlot) {
    if (group.lane() == 0) {
      t.flags[placed.slot] = static_cast<uint8_t>(t.flags[placed.slot] | a.flags);
      t.scores[placed.slot] = TouchedScore(scoring, t.scores[placed.slot]);
    }
    group.Sync();
    return placed;
  }
  placed.slot = FreeInBucket<kSlots>(group, t, bucket);
  if (placed.slot == kNoGpuSlot) {
    placed.slot = VictimInBucket<kSlots>(group, t, bucket);
    if (placed.slot == kNoGpuSlot) return placed;
    placed.left = 1;
    placed.left_flags = t.flags[placed.slot];
    placed.left_position = t.positions[placed.slot];
    group.Sync();
  }
  if (group.lane() == 0) {
    if (placed.left != 0) {
      AddGhost<kSlots>(t, bucket, placed.left_position, t.scores[placed.slot]);
    }
    SetSlot(t, placed.slot, a, FirstScore(scoring, TakeGhost<kSlots>(t, bucket, a.position)));
  }
  group.Sync();
  return placed;
}

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_BUCKET_H_
