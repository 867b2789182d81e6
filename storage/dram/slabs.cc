#include "storage/dram/slabs.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace strata::storage {
namespace {

constexpr uint64_t kSlabBytes = uint64_t{32} << 20;
constexpr uint32_t kCollapseSlots = 1024;  // looked at after so many

}  // namespace

RowSlabs::RowSlabs(size_t stride, uint64_t most, PageUse use)
    : stride_(stride),
      most_(most),
      use_(use),
      slab_slots_(std::bit_floor(std::max<uint64_t>(1, kSlabBytes / stride))) {
  slab_shift_ = static_cast<uint32_t>(std::countr_zero(slab_slots_));
  slab_mask_ = slab_slots_ - 1;
}

absl::Status RowSlabs::Reserve(uint64_t slots) {
  while (mapped_slots_ < slots) {
    const uint64_t add = std::min(slab_slots_, most_ - mapped_slots_);
    absl::StatusOr<HugeMemory> slab = HugeMemory::Allocate(add * stride_, use_);
    if (!slab.ok()) return slab.status();
    slabs_.push_back(*std::move(slab));
    mapped_slots_ += add;
  }
  return absl::OkStatus();
}

uint32_t RowSlabs::Take() {
  const uint32_t slot = free_;
  if (slot != kNoSlot) {
    std::memcpy(&free_, At(slot), sizeof(free_));
    return slot;
  }
  if (use_ == PageUse::kGradual && next_ % std::min<uint64_t>(kCollapseSlots, slab_slots_) == 0) {
    CollapseFull();
  }
  return next_++;
}

// All slots below next_ were taken and filled.
void RowSlabs::CollapseFull() {
  if (next_ == 0) return;
  HugeMemory& slab = slabs_[(uint64_t{next_} - 1) >> slab_shift_];
  const bool whole = (next_ & slab_mask_) == 0;
  const size_t filled = whole ? slab.size() : (next_ & slab_mask_) * stride_;
  if (filled - collapsed_ >= HugeMemory::kHugePage) {
    const size_t full = filled / HugeMemory::kHugePage * HugeMemory::kHugePage;
    slab.Collapse(collapsed_, full - collapsed_);
    collapsed_ = full;
  }
  if (whole) collapsed_ = 0;
}

void RowSlabs::Free(uint32_t slot) {
  std::memcpy(At(slot), &free_, sizeof(free_));
  free_ = slot;
}

std::vector<bool> RowSlabs::FreeSlots() const {
  std::vector<bool> free(next_, false);
  for (uint32_t slot = free_; slot != kNoSlot;) {
    free[slot] = true;
    std::memcpy(&slot, At(slot), sizeof(slot));
  }
  return free;
}

}  // namespace strata::storage
