#include "storage/gpu/device/sweeps.h"

#include "ops/cuda/kernel/kernel.h"
#include "ops/cuda/kernel/scan.h"
#include "ops/inline.h"
#include "storage/gpu/slots.h"

namespace strata::storage::gpu {
namespace {

using ops::gpu::LaunchOver;

struct BeginSelect {
  static constexpr uint32_t kLanes = 1;
  GpuSelect begin;
  GpuSelect* select;
  uint32_t* bins;
  STRATA_HD_MEMBER uint64_t items() const { return kSelectBins; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t i) const {
    bins[i] = 0;
    if (i == 0) *select = begin;
  }
};

STRATA_HD uint32_t CountBits(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return static_cast<uint32_t>(__popc(bits));
#else
  return static_cast<uint32_t>(__builtin_popcount(bits));
#endif
}

// Names the dirty rows of [first, select->high] in the order of their slots
// (ops/cuda/kernel/scan.h); an element is eight slots.
struct NameDirty {
  GpuSlots t;
  uint32_t eights;
  uint64_t first;
  const GpuSelect* select;
  uint32_t most;
  uint64_t* positions;
  uint32_t* slots;
  uint32_t* count;
  STRATA_HD_MEMBER uint32_t items() const { return eights; }
  STRATA_HD_MEMBER uint32_t value(uint32_t i) const {
    return CountBits(DirtyOfEight(t, size_t{i} * 8, first, select->high));
  }
  STRATA_HD_MEMBER void emit(uint32_t i, uint32_t before, uint32_t rows) const {
    if (rows == 0) return;
    const uint32_t dirty = DirtyOfEight(t, size_t{i} * 8, first, select->high);
    for (uint32_t at = 0; at < 8; ++at) {
      if ((dirty >> at & 1) == 0 || before >= most) continue;
      positions[before] = t.positions[size_t{i} * 8 + at];
      slots[before] = i * 8 + at;
      ++before;
    }
  }
  STRATA_HD_MEMBER void finish(uint32_t total) const { *count = total < most ? total : most; }
};

// Behind the last row, what stays there when rows are sorted: any position may be a row's, but
// equal keys keep their order.
struct PadDirty {
  static constexpr uint32_t kLanes = 1;
  const uint32_t* count;
  uint32_t n;
  uint64_t* positions;
  uint32_t* slots;
  STRATA_HD_MEMBER uint64_t items() const { return n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t i) const {
    if (i < *count) return;
    positions[i] = ~uint64_t{0};
    slots[i] = kNoGpuSlot;
  }
};

struct RowOfEach {
  static constexpr uint32_t kLanes = 1;
  GpuSlots t;
  const uint64_t* positions;
  const uint32_t* slots;
  const uint32_t* count;
  GpuRow* rows;
  STRATA_HD_MEMBER uint64_t items() const { return *count; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t i) const {
    rows[i].position = positions[i];
    rows[i].slot = slots[i];
    rows[i].flags = t.flags[slots[i]];
  }
};

template <int kSlots>
struct LeavingOfEach {
  static constexpr uint32_t kLanes = 32;
  GpuSlots t;
  uint32_t first;
  uint32_t looks;
  GpuRow* rows;
  STRATA_HD_MEMBER uint64_t items() const { return looks; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group& group, uint64_t i) const {
    const auto bucket = static_cast<uint32_t>((first + i) % t.buckets);
    LeavingRows<kSlots>(group, t, bucket, rows + i * kLeavingLine<kSlots>);
  }
};

// The first `most` of them, and after how many buckets these were found (ops/cuda/kernel/scan.h).
struct KeepLeaving {
  const GpuRow* of_buckets;
  uint32_t line;
  uint32_t looks;
  uint32_t most;
  GpuLeaving* leaving;
  GpuRow* rows;
  STRATA_HD_MEMBER uint32_t items() const { return looks; }
  STRATA_HD_MEMBER uint32_t value(uint32_t i) const {
    uint32_t n = 0;
    while (n < line && of_buckets[i * line + n].slot != kNoGpuSlot) ++n;
    return n;
  }
  STRATA_HD_MEMBER void emit(uint32_t i, uint32_t before, uint32_t n) const {
    if (before >= most) return;
    for (uint32_t k = 0; k < n && before + k < most; ++k) {
      rows[before + k] = of_buckets[i * line + k];
    }
    if (before + n >= most) leaving->looked = i + 1;
  }
  STRATA_HD_MEMBER void finish(uint32_t total) const {
    leaving->rows = total < most ? total : most;
    if (total < most) leaving->looked = looks;
  }
};

}  // namespace

absl::Status DirtyRows(const GpuDeviceTable& d, uint64_t first, uint64_t last, uint32_t n,
                       const GpuDirtyLists& lists, uint32_t* count, GpuRow* rows) {
  const BeginSelect begin{
      {.low = first, .high = last, .wanted = n, .done = 0}, lists.select, lists.bins};
  absl::Status s = LaunchOver(*d.api, "begin select", begin, kSelectBins, d.stream);
  const CountParts parts{d.t, d.slots(), lists.select, lists.bins};
  for (uint32_t pass = 0; pass < SelectPasses(last - first) && s.ok(); ++pass) {
    s = LaunchOver(*d.api, "count dirty rows", parts, CountParts::Items(d.slots()), d.stream);
    if (s.ok()) {
      s = LaunchOver(*d.api, "choose part", ChoosePart{lists.select, lists.bins}, 1, d.stream);
    }
  }
  if (s.ok()) {
    const uint32_t eights = d.slots() / 8;
    const NameDirty name{d.t, eights, first, lists.select, n, lists.positions, lists.slots, count};
    s = ops::gpu::Scan(*d.api, "name dirty rows", name, eights, d.tiles, d.stream);
  }
  if (s.ok()) {
    const PadDirty pad{count, n, lists.positions, lists.slots};
    s = LaunchOver(*d.api, "pad dirty rows", pad, n, d.stream);
  }
  if (s.ok()) {
    s = SortPairs(d, lists.positions, lists.slots, n, 64, lists.sorted, lists.sorted_slots);
  }
  if (!s.ok()) return s;
  const RowOfEach row{d.t, lists.sorted, lists.sorted_slots, count, rows};
  return LaunchOver(*d.api, "dirty rows", row, n, d.stream);
}

absl::Status LeavingRowsFrom(const GpuDeviceTable& d, uint32_t first, uint32_t looks, uint32_t most,
                             GpuRow* of_buckets, GpuLeaving* leaving, GpuRow* rows) {
  const char* const name = "leaving rows";
  absl::Status s;
  switch (d.bucket_slots) {
    case 32:
      s = LaunchOver(*d.api, name, LeavingOfEach<32>{d.t, first, looks, of_buckets}, looks,
                     d.stream);
      break;
    case 64:
      s = LaunchOver(*d.api, name, LeavingOfEach<64>{d.t, first, looks, of_buckets}, looks,
                     d.stream);
      break;
    default:
      s = LaunchOver(*d.api, name, LeavingOfEach<128>{d.t, first, looks, of_buckets}, looks,
                     d.stream);
  }
  if (!s.ok()) return s;
  const KeepLeaving keep{of_buckets, d.bucket_slots / 16, looks, most, leaving, rows};
  return ops::gpu::Scan(*d.api, "keep leaving rows", keep, looks, d.tiles, d.stream);
}

}  // namespace strata::storage::gpu
