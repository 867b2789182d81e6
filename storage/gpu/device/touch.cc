#include "storage/gpu/device/touch.h"

#include "ops/cuda/kernel/kernel.h"
#include "ops/inline.h"
#include "storage/gpu/slots.h"
#include "storage/row/touch.h"

namespace strata::storage::gpu {
namespace {

struct FoldEach {
  static constexpr uint32_t kLanes = 1;
  GpuFold fold;
  uint8_t* rows;
  uint32_t stride;
  uint32_t n;
  STRATA_HD_MEMBER uint64_t items() const { return n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t i) const {
    const uint32_t slot = fold.slots[i];
    uint8_t outcome = fold.first ? uint8_t{0} : fold.outcomes[i];
    if (slot != kNoGpuSlot) outcome |= RowOutcomeOf(fold.of_run[i]);
    fold.outcomes[i] = outcome;
    if (!fold.last || (outcome & kOutcomeApplied) == 0) return;
    TouchMeta(rows + uint64_t{slot} * stride + fold.meta_offset, fold.step);
  }
};

struct ZeroEach {
  static constexpr uint32_t kLanes = 1;
  const uint32_t* slots;
  uint8_t* rows;
  uint32_t stride;
  uint32_t n, first, end;
  STRATA_HD_MEMBER uint64_t items() const { return n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t i) const {
    auto* const words = reinterpret_cast<uint32_t*>(rows + uint64_t{slots[i]} * stride);
    for (uint32_t k = first; k < end; ++k) words[k] = 0;
  }
};

}  // namespace

absl::Status FoldOutcomes(const GpuDeviceTable& d, const GpuFold& fold, uint32_t n) {
  const FoldEach each{fold, d.t.rows, d.t.stride, n};
  return ops::gpu::LaunchOver(*d.api, "fold outcomes", each, n, d.stream);
}

absl::Status ZeroWords(const GpuDeviceTable& d, const uint32_t* slots, uint32_t n, uint32_t first,
                       uint32_t end) {
  const ZeroEach each{slots, d.t.rows, d.t.stride, n, first, end};
  return ops::gpu::LaunchOver(*d.api, "zero words", each, n, d.stream);
}

}  // namespace strata::storage::gpu
