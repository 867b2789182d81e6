// Slots of one size in slabs: where a RowStore's rows lie. A slot is a number; it keeps its place.
// Tested by tests/storage/dram/store_test.cc
#ifndef STRATA_STORAGE_DRAM_SLABS_H_
#define STRATA_STORAGE_DRAM_SLABS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "storage/io/huge_memory.h"

namespace strata::storage {

// Each slot begins with the position of its row; a freed slot, with the next freed one.
// Bytes: slots ever used x stride, rounded up to 4 KiB (PageUse::kGradual) or 2 MiB (kHuge).
// Not thread-safe.
class RowSlabs {
 public:
  static constexpr uint32_t kNoSlot = ~0u;
  static constexpr int kSlotBits = 28;
  static constexpr uint32_t kMaxSlots = (1u << kSlotBits) - 1;  // and slot numbers are below it

  // stride: bytes of a slot, a multiple of 4, >= 8. most: slots, <= kMaxSlots.
  RowSlabs(size_t stride, uint64_t most, PageUse use);

  size_t stride() const { return stride_; }
  // Every slot in use is below this.
  uint32_t bound() const { return next_; }

  uint8_t* At(uint32_t slot) const {
    return slabs_[uint64_t{slot} >> slab_shift_].data() + (slot & slab_mask_) * stride_;
  }
  Position PositionAt(uint32_t slot) const {
    Position p;
    std::memcpy(&p, At(slot), sizeof(p));
    return p;
  }

  // Maps slabs until `slots` slots, used and free ones, exist. Touches nothing.
  absl::Status Reserve(uint64_t slots);
  // A free slot; its bytes are uninitialised. REQUIRES: one is reserved.
  uint32_t Take();
  void Free(uint32_t slot);

  // Bit s: slot s < bound() is free. One bit a slot.
  std::vector<bool> FreeSlots() const;

 private:
  void CollapseFull();

  const size_t stride_;
  const uint64_t most_;
  const PageUse use_;
  uint32_t slab_shift_;
  uint64_t slab_mask_;
  uint64_t slab_slots_;  // slots of a full slab
  std::vector<HugeMemory> slabs_;
  uint64_t mapped_slots_ = 0;
  uint32_t next_ = 0;
  uint32_t free_ = kNoSlot;  // chained through the freed slots
  size_t collapsed_ = 0;     // bytes of the slab that is being filled
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_DRAM_SLABS_H_
