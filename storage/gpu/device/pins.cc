#include "storage/gpu/device/pins.h"

#include "ops/cuda/kernel/kernel.h"
#include "ops/cuda/kernel/scan.h"
#include "ops/inline.h"
#include "storage/gpu/slots.h"

namespace strata::storage::gpu {
namespace {

using ops::gpu::LaunchOver;

constexpr uint32_t kMostPins = 0xff;

// What Pin does at an occurrence that it comes to.
enum PinCode : uint8_t {
  kPassesOver,
  kPinsAgain,
  kPinsFirst,
  kEnds,
};

struct Ordinals {
  static constexpr uint32_t kLanes = 1;
  uint32_t* out;
  uint32_t n;
  STRATA_HD_MEMBER uint64_t items() const { return n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t i) const {
    out[i] = static_cast<uint32_t>(i);
  }
};

STRATA_HD bool HasRow(const GpuSlots& t, uint32_t slots, uint32_t slot) {
  return slot < slots && t.control[slot] != 0;
}

// Item k is the k-th occurrence in the order of slots.
struct CodeEach {
  static constexpr uint32_t kLanes = 1;
  GpuSlots t;
  uint32_t slots;
  const uint32_t* sorted;
  const uint32_t* order;
  uint32_t n;
  uint8_t* codes;
  STRATA_HD_MEMBER uint64_t items() const { return n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t k) const {
    codes[order[k]] = Code(static_cast<uint32_t>(k));
  }
  STRATA_HD_MEMBER uint8_t Code(uint32_t k) const {
    const uint32_t slot = sorted[k];
    if (slot == kNoGpuSlot) return kPassesOver;
    if (!HasRow(t, slots, slot)) return kEnds;
    uint32_t pins = t.pins[slot];
    const bool none = pins == 0;
    uint32_t at = k;
    // Those before it have pinned the row, or Pin does not come here.
    for (; pins < kMostPins && at > 0 && sorted[at - 1] == slot; --at) ++pins;
    if (pins >= kMostPins) return kEnds;
    return none && at == k ? kPinsFirst : kPinsAgain;
  }
};

// Sums of rows pinned for the first time, and where Pin ends because of them
// (ops/cuda/kernel/scan.h).
struct FirstPins {
  const uint8_t* codes;
  uint32_t n;
  uint32_t most_rows;
  uint32_t* before;
  uint8_t* stops;
  GpuPinCounts* counts;
  STRATA_HD_MEMBER uint32_t items() const { return n; }
  STRATA_HD_MEMBER uint32_t value(uint32_t i) const { return codes[i] == kPinsFirst ? 1 : 0; }
  STRATA_HD_MEMBER void emit(uint32_t i, uint32_t rows, uint32_t first) const {
    before[i] = rows;
    stops[i] = codes[i] == kEnds || (first != 0 && rows >= most_rows) ? 1 : 0;
  }
  STRATA_HD_MEMBER void finish(uint32_t total) const { counts->rows = total; }
};

// The first place where Pin ends.
struct FirstStop {
  const uint8_t* stops;
  uint32_t n;
  const uint32_t* before;
  GpuPinCounts* counts;
  STRATA_HD_MEMBER uint32_t items() const { return n; }
  STRATA_HD_MEMBER uint32_t value(uint32_t i) const { return stops[i]; }
  STRATA_HD_MEMBER void emit(uint32_t i, uint32_t earlier, uint32_t stop) const {
    if (stop == 0 || earlier != 0) return;
    counts->through = i;
    counts->rows = before[i];
  }
  STRATA_HD_MEMBER void finish(uint32_t total) const {
    if (total == 0) counts->through = n;
  }
};

// The first occurrence of a slot writes its counter.
struct PinEach {
  static constexpr uint32_t kLanes = 1;
  GpuSlots t;
  uint32_t slots;
  const uint32_t* sorted;
  const uint32_t* order;
  uint32_t n;
  const GpuPinCounts* counts;
  STRATA_HD_MEMBER uint64_t items() const { return n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t first) const {
    const uint32_t slot = sorted[first];
    if (!HasRow(t, slots, slot) || (first > 0 && sorted[first - 1] == slot)) return;
    uint32_t pins = t.pins[slot];
    for (uint64_t k = first; k < n && sorted[k] == slot && order[k] < counts->through; ++k) ++pins;
    t.pins[slot] = static_cast<uint8_t>(pins);
  }
};

// The same for Unpin; `ended` of each occurrence is set by itself, or by the first of its slot.
struct UnpinEach {
  static constexpr uint32_t kLanes = 1;
  GpuSlots t;
  uint32_t slots;
  const uint64_t* positions;
  const uint32_t* sorted;
  const uint32_t* order;
  uint32_t n;
  uint8_t* ended;
  STRATA_HD_MEMBER uint64_t items() const { return n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t first) const {
    const uint32_t slot = sorted[first];
    ended[order[first]] = 0;
    if (!HasRow(t, slots, slot) || (first > 0 && sorted[first - 1] == slot)) return;
    const uint32_t pins = t.pins[slot];
    uint32_t left = pins;
    for (uint64_t k = first; left > 0 && k < n && sorted[k] == slot; ++k) {
      if (t.positions[slot] == positions[order[k]]) --left;
    }
    t.pins[slot] = static_cast<uint8_t>(left);
    ended[order[first]] = pins > 0 && left == 0 ? 1 : 0;
  }
};

absl::Status SortSlots(const GpuDeviceTable& d, const uint32_t* slots, uint32_t n,
                       const GpuPinLists& lists) {
  absl::Status s = LaunchOver(*d.api, "ordinals", Ordinals{lists.ordinals, n}, n, d.stream);
  if (s.ok()) s = SortPairs(d, slots, lists.ordinals, n, 32, lists.sorted, lists.order);
  return s;
}

}  // namespace

absl::Status PinRows(const GpuDeviceTable& d, const uint32_t* slots, uint32_t n, uint32_t most_rows,
                     const GpuPinLists& lists, GpuPinCounts* counts) {
  absl::Status s = SortSlots(d, slots, n, lists);
  if (s.ok()) {
    const CodeEach code{d.t, d.slots(), lists.sorted, lists.order, n, lists.codes};
    s = LaunchOver(*d.api, "pins to come", code, n, d.stream);
  }
  if (s.ok()) {
    const FirstPins first{lists.codes, n, most_rows, lists.before, lists.stops, counts};
    s = ops::gpu::Scan(*d.api, "first pins", first, n, d.tiles, d.stream);
  }
  if (s.ok()) {
    const FirstStop stop{lists.stops, n, lists.before, counts};
    s = ops::gpu::Scan(*d.api, "end of pins", stop, n, d.tiles, d.stream);
  }
  if (!s.ok()) return s;
  const PinEach pin{d.t, d.slots(), lists.sorted, lists.order, n, counts};
  return LaunchOver(*d.api, "pin rows", pin, n, d.stream);
}

absl::Status UnpinRows(const GpuDeviceTable& d, const uint64_t* positions, const uint32_t* slots,
                       uint32_t n, const GpuPinLists& lists, uint8_t* ended) {
  absl::Status s = SortSlots(d, slots, n, lists);
  if (!s.ok()) return s;
  const UnpinEach unpin{d.t, d.slots(), positions, lists.sorted, lists.order, n, ended};
  return LaunchOver(*d.api, "unpin rows", unpin, n, d.stream);
}

}  // namespace strata::storage::gpu
