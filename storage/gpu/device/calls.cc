#include "storage/gpu/device/calls.h"

#include <bit>

#include "ops/cuda/kernel/kernel.h"
#include "ops/cuda/kernel/scan.h"
#include "ops/inline.h"
#include "storage/gpu/slots.h"

namespace strata::storage::gpu {
namespace {

using ops::gpu::LaunchOver;

template <int kSlots>
struct FindEach {
  static constexpr uint32_t kLanes = kFindLanes<kSlots>;
  GpuFind call;
  uint32_t n;
  STRATA_HD_MEMBER uint64_t items() const { return n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group& group, uint64_t i) const {
    FindOne<kSlots>(group, call, i);
  }
};

template <int kSlots>
struct LookUpEach {
  static constexpr uint32_t kLanes = kFindLanes<kSlots>;
  GpuLookUp call;
  uint32_t n;
  STRATA_HD_MEMBER uint64_t items() const { return n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group& group, uint64_t i) const {
    LookUpOne<kSlots>(group, call, i);
  }
};

struct BucketOfEach {
  static constexpr uint32_t kLanes = 1;
  const GpuArrival* arrivals;
  uint32_t n;
  uint32_t table_buckets;
  uint32_t* buckets;
  uint32_t* ordinals;
  STRATA_HD_MEMBER uint64_t items() const { return n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t i) const {
    buckets[i] = GpuBucketOf(arrivals[i].position, table_buckets);
    ordinals[i] = static_cast<uint32_t>(i);
  }
};

// Where a bucket's arrivals begin (ops/cuda/kernel/scan.h).
struct BucketRuns {
  const uint32_t* sorted_buckets;
  uint32_t n;
  uint32_t* begins;
  uint32_t* runs;
  STRATA_HD_MEMBER uint32_t items() const { return n; }
  STRATA_HD_MEMBER uint32_t value(uint32_t k) const {
    return k == 0 || sorted_buckets[k] != sorted_buckets[k - 1] ? 1 : 0;
  }
  STRATA_HD_MEMBER void emit(uint32_t k, uint32_t before, uint32_t begins_here) const {
    if (begins_here != 0) begins[before] = k;
  }
  STRATA_HD_MEMBER void finish(uint32_t total) const {
    begins[total] = n;
    *runs = total;
  }
};

template <int kSlots>
struct InsertEach {
  static constexpr uint32_t kLanes = kSlots / 8;
  GpuInsert call;
  const uint32_t* runs;
  STRATA_HD_MEMBER uint64_t items() const { return *runs; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group& group, uint64_t run) const {
    InsertRun<kSlots>(group, call, run);
  }
};

struct CopyEach {
  static constexpr uint32_t kLanes = 8;
  GpuRowsAt to;
  GpuRowsAt from;
  uint32_t stride;
  uint32_t n;
  STRATA_HD_MEMBER uint64_t items() const { return n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group& group, uint64_t i) const {
    const uint64_t to_number = to.numbers == nullptr ? i : to.numbers[i];
    const uint64_t from_number = from.numbers == nullptr ? i : from.numbers[i];
    CopyRow(group, to.base + to_number * stride, from.base + from_number * stride, stride);
  }
};

struct ChangeEach {
  static constexpr uint32_t kLanes = 1;
  uint8_t* flags;
  const uint32_t* slots;
  uint32_t n;
  uint8_t set, clear;
  STRATA_HD_MEMBER uint64_t items() const { return n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t i) const {
    flags[slots[i]] = static_cast<uint8_t>((flags[slots[i]] | set) & ~clear);
  }
};

struct ReadEach {
  static constexpr uint32_t kLanes = 1;
  GpuSlots t;
  const uint32_t* slots;
  uint32_t n;
  uint8_t* flags;
  uint8_t* pinned;
  STRATA_HD_MEMBER uint64_t items() const { return n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t i) const {
    const uint32_t slot = slots[i];
    flags[i] = slot == kNoGpuSlot ? uint8_t{0} : t.flags[slot];
    pinned[i] = slot != kNoGpuSlot && t.pins[slot] != 0 ? 1 : 0;
  }
};

struct ClearEach {
  static constexpr uint32_t kLanes = 1;
  GpuSlots t;
  const uint32_t* slots;
  uint32_t n;
  STRATA_HD_MEMBER uint64_t items() const { return n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t i) const {
    ClearSlot(t, slots[i]);
  }
};

struct AgeEach {
  static constexpr uint32_t kLanes = 1;
  GpuSlots t;
  uint32_t slots;
  GpuAging aging;
  STRATA_HD_MEMBER uint64_t items() const { return slots; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t slot) const {
    t.scores[slot] = AgedScore(aging, t.scores[slot], 1);
    if (t.ghosts != nullptr) t.ghosts[slot].score = AgedScore(aging, t.ghosts[slot].score, 0);
  }
};

}  // namespace

absl::Status FindRows(const GpuDeviceTable& d, const GpuFind& call, uint32_t n) {
  switch (d.bucket_slots) {
    case 32:
      return LaunchOver(*d.api, "find rows", FindEach<32>{call, n}, n, d.stream);
    case 64:
      return LaunchOver(*d.api, "find rows", FindEach<64>{call, n}, n, d.stream);
    default:
      return LaunchOver(*d.api, "find rows", FindEach<128>{call, n}, n, d.stream);
  }
}

absl::Status LookUpRows(const GpuDeviceTable& d, const uint64_t* positions, uint32_t n,
                        uint32_t* slots, uint8_t* rows) {
  const GpuLookUp call{.t = d.t, .positions = positions, .slots = slots, .rows = rows};
  switch (d.bucket_slots) {
    case 32:
      return LaunchOver(*d.api, "look up rows", LookUpEach<32>{call, n}, n, d.stream);
    case 64:
      return LaunchOver(*d.api, "look up rows", LookUpEach<64>{call, n}, n, d.stream);
    default:
      return LaunchOver(*d.api, "look up rows", LookUpEach<128>{call, n}, n, d.stream);
  }
}

absl::Status InsertRows(const GpuDeviceTable& d, const GpuScoring& scoring,
                        const GpuArrival* arrivals, uint32_t n, const GpuInsertLists& lists,
                        GpuPlaced* placed) {
  if (n == 0) return absl::OkStatus();
  const BucketOfEach numbers{arrivals, n, d.t.buckets, lists.buckets, lists.ordinals};
  absl::Status s = LaunchOver(*d.api, "arrivals' buckets", numbers, n, d.stream);
  const auto bits = static_cast<uint32_t>(std::bit_width((d.t.buckets - 1) | 1));
  if (s.ok()) {
    s = SortPairs(d, lists.buckets, lists.ordinals, n, bits, lists.sorted_buckets, lists.order);
  }
  if (s.ok()) {
    const BucketRuns runs{lists.sorted_buckets, n, lists.begins, lists.runs};
    s = ops::gpu::Scan(*d.api, "buckets' arrivals", runs, n, d.tiles, d.stream);
  }
  if (!s.ok()) return s;
  const GpuInsert call{.t = d.t,
                       .scoring = scoring,
                       .arrivals = arrivals,
                       .order = lists.order,
                       .begins = lists.begins,
                       .placed = placed};
  switch (d.bucket_slots) {
    case 32:
      return LaunchOver(*d.api, "insert rows", InsertEach<32>{call, lists.runs}, n, d.stream);
    case 64:
      return LaunchOver(*d.api, "insert rows", InsertEach<64>{call, lists.runs}, n, d.stream);
    default:
      return LaunchOver(*d.api, "insert rows", InsertEach<128>{call, lists.runs}, n, d.stream);
  }
}

absl::Status CopyRows(const GpuDeviceTable& d, const GpuRowsAt& to, const GpuRowsAt& from,
                      uint32_t n) {
  return LaunchOver(*d.api, "copy rows", CopyEach{to, from, d.t.stride, n}, n, d.stream);
}

absl::Status ChangeFlags(const GpuDeviceTable& d, const uint32_t* slots, uint32_t n, uint8_t set,
                         uint8_t clear) {
  return LaunchOver(*d.api, "change flags", ChangeEach{d.t.flags, slots, n, set, clear}, n,
                    d.stream);
}

absl::Status ReadFlags(const GpuDeviceTable& d, const uint32_t* slots, uint32_t n, uint8_t* flags,
                       uint8_t* pinned) {
  return LaunchOver(*d.api, "read flags", ReadEach{d.t, slots, n, flags, pinned}, n, d.stream);
}

absl::Status ClearSlots(const GpuDeviceTable& d, const uint32_t* slots, uint32_t n) {
  return LaunchOver(*d.api, "clear slots", ClearEach{d.t, slots, n}, n, d.stream);
}

absl::Status AgeScores(const GpuDeviceTable& d, const GpuAging& aging) {
  return LaunchOver(*d.api, "age scores", AgeEach{d.t, d.slots(), aging}, d.slots(), d.stream);
}

}  // namespace strata::storage::gpu
