// Find and Insert of backend.h, item by item: what kernels of a device, and threads of the
// host, run with the group that works on the item (group.h).
// Tested by tests/storage/gpu/device/lanes_test.cc
#ifndef STRATA_STORAGE_GPU_CALLS_H_
#define STRATA_STORAGE_GPU_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ops/inline.h"
#include "storage/gpu/bucket.h"
#include "storage/gpu/control.h"
#include "storage/gpu/score.h"
#include "storage/gpu/slots.h"

namespace strata::storage::gpu {

enum class GpuUse : uint8_t {
  kLook,    // nothing changes
  kRead,    // held, scored, marked as read
  kUpdate,  // held, scored, marked dirty
};

// The slot holds the row of that position. Any slot number.
STRATA_HD bool HoldsRow(const GpuSlots& t, size_t slots, uint32_t slot, uint64_t position) {
  return slot < slots && t.control[slot] != 0 && t.positions[slot] == position;
}

// Uses a row that was found. True: it was scored.
STRATA_HD bool UseRow(const GpuSlots& t, const GpuScoring& scoring, uint32_t slot, GpuUse use,
                      bool guessed) {
  uint8_t flags = t.flags[slot] | kGpuHeld;
  const bool was_read = (flags & kGpuRead) != 0;
  if (use == GpuUse::kUpdate) flags |= kGpuDirty;
  if (!guessed) {
    flags = static_cast<uint8_t>(use == GpuUse::kRead ? flags | kGpuRead : flags & ~kGpuRead);
  }
  t.flags[slot] = flags;
  if (guessed || (use == GpuUse::kUpdate && was_read)) return false;
  t.scores[slot] = TouchedScore(scoring, t.scores[slot]);
  return true;
}

// All in memory of the side that runs it. Trivially copyable.
struct GpuFind {
  GpuSlots t;
  GpuScoring scoring;
  GpuUse use = GpuUse::kLook;
  const uint64_t* positions = nullptr;  // (n), distinct
  uint32_t* slots = nullptr;            // (n), guesses; then answers
  uint8_t* scored = nullptr;            // (n), 1: it was scored
};

// Item i is positions[i]. Items touch rows of their own.
template <int kSlots, typename Group>
STRATA_HD void FindOne(const Group& group, const GpuFind& call, uint64_t i) {
  const uint64_t position = call.positions[i];
  const uint32_t guess = call.slots[i];
  const bool guessed = HoldsRow(call.t, size_t{call.t.buckets} * kSlots, guess, position);
  const uint32_t slot =
      guessed
          ? guess
          : FindInBucket<kSlots>(group, call.t, GpuBucketOf(position, call.t.buckets), position);
  group.Sync();  // all have read the guess
  if (group.lane() != 0) return;
  const bool uses = slot != kNoGpuSlot && call.use != GpuUse::kLook;
  call.scored[i] = uses && UseRow(call.t, call.scoring, slot, call.use, guessed);
  call.slots[i] = slot;
}

// All in memory of the side that runs it. Trivially copyable.
struct GpuInsert {
  GpuSlots t;
  GpuScoring scoring;
  const GpuArrival* arrivals = nullptr;  // (n)
  const uint32_t* order = nullptr;       // (n), of arrivals: stable by bucket
  const uint32_t* begins = nullptr;      // (runs + 1), in order: each bucket's run, and n
  GpuPlaced* placed = nullptr;           // (n)
};

// 16 bytes at a time, by all lanes, four of them read by a lane before the first is written.
// REQUIRES: bytes and both addresses are multiples of 16, and the two do not overlap.
template <typename Group>
STRATA_HD void CopyRow(const Group& group, uint8_t* to, const uint8_t* from, uint32_t bytes) {
  constexpr uint32_t kAhead = 4;
  const uint32_t step = 16 * group.lanes();
  for (uint32_t begin = 16 * group.lane(); begin < bytes; begin += kAhead * step) {
    GpuSixteen parts[kAhead];
    STRATA_UNROLL
    for (uint32_t i = 0; i < kAhead; ++i) {
      parts[i] = begin + i * step < bytes ? SixteenBytes(from + begin + i * step) : GpuSixteen{};
    }
    STRATA_UNROLL
    for (uint32_t i = 0; i < kAhead; ++i) {
      if (begin + i * step >= bytes) continue;
      std::memcpy(__builtin_assume_aligned(to + begin + i * step, 16), &parts[i], sizeof(parts[i]));
    }
  }
}

// What a look-up without guesses answers. All in memory of the side that runs it. Trivially
// copyable.
struct GpuLookUp {
  GpuSlots t;
  const uint64_t* positions = nullptr;  // (n), any
  uint32_t* slots = nullptr;            // (n), or null: not wanted
  uint8_t* rows = nullptr;              // (n, t.stride), or null; rows not found are left
};

// Item i is positions[i]: its slot, or kNoGpuSlot, and its row. Nothing of the table changes.
template <int kSlots, typename Group>
STRATA_HD void LookUpOne(const Group& group, const GpuLookUp& call, uint64_t i) {
  const uint64_t position = call.positions[i];
  const uint32_t slot =
      FindInBucket<kSlots>(group, call.t, GpuBucketOf(position, call.t.buckets), position);
  if (call.slots != nullptr && group.lane() == 0) call.slots[i] = slot;
  if (call.rows == nullptr || slot == kNoGpuSlot) return;
  CopyRow(group, call.rows + i * call.t.stride, call.t.rows + size_t{slot} * call.t.stride,
          call.t.stride);
}

// Item `run` is the arrivals of one bucket, in their order. The next one is read while its
// predecessor is at work.
template <int kSlots, typename Group>
STRATA_HD void InsertRun(const Group& group, const GpuInsert& call, uint64_t run) {
  const uint32_t end = call.begins[run + 1];
  uint32_t k = call.begins[run];
  uint32_t next = call.order[k];
  GpuArrival next_arrival = call.arrivals[next];
  for (; k < end; ++k) {
    const uint32_t i = next;
    const GpuArrival arrival = next_arrival;
    if (k + 1 < end) {
      next = call.order[k + 1];
      next_arrival = call.arrivals[next];
    }
    const uint32_t bucket = GpuBucketOf(arrival.position, call.t.buckets);
    const GpuPlaced placed = FindOrInsert<kSlots>(group, call.t, call.scoring, bucket, arrival);
    if (placed.left != 0 && (placed.left_flags & kGpuDirty) != 0) {
      CopyRow(group, call.t.staged + size_t{arrival.place} * call.t.stride,
              call.t.rows + size_t{placed.slot} * call.t.stride, call.t.stride);
    }
    if (group.lane() == 0) call.placed[i] = placed;
  }
}

struct GpuRow {
  uint64_t position = 0;
  uint32_t slot = kNoGpuSlot;
  uint8_t flags = 0;
};

// How many rows of a bucket count as next to leave.
template <int kSlots>
inline constexpr uint32_t kLeavingLine = kSlots / 16;

// Of a full bucket, the dirty ones among the rows that leave first; slot is kNoGpuSlot behind the
// last, and of a bucket with a free slot at once.
template <int kSlots, typename Group>
STRATA_HD void LeavingRows(const Group& group, const GpuSlots& t, uint32_t bucket, GpuRow* rows) {
  const size_t first = size_t{bucket} * kSlots;
  const bool full = FreeInBucket<kSlots>(group, t, bucket) == kNoGpuSlot;
  uint32_t begin = 0;  // orders from here on are left
  uint32_t n = 0;
  for (uint32_t i = 0; full && i < kLeavingLine<kSlots>; ++i) {
    uint32_t lowest = kStays;
    for (uint32_t at = group.lane(); at < kSlots; at += group.lanes()) {
      const uint32_t order = LeavingOrder(t, first + at, at);
      if (begin <= order && order < lowest) lowest = order;
    }
    lowest = ~group.Max(~lowest);
    if (lowest == kStays) break;
    begin = lowest + 1;
    const auto slot = static_cast<uint32_t>(first + (lowest & 0xff));
    if ((t.flags[slot] & kGpuDirty) == 0) continue;
    if (group.lane() == 0) {
      rows[n].position = t.positions[slot];
      rows[n].slot = slot;
      rows[n].flags = t.flags[slot];
    }
    ++n;
  }
  if (group.lane() == 0 && n < kLeavingLine<kSlots>) rows[n].slot = kNoGpuSlot;
}

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_CALLS_H_
