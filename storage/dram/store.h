// Rows of one size in memory, found by position: an index (index.h) over rows in slabs
// (slabs.h). The common ground of the DRAM table and of the DRAM tier of the tiered table.
//
// Bytes, for n rows:
//   n * (row_bytes + 8)         rows, each behind its position
//   + RowIndex::BytesFor(n)     index: 64 * (ceil(n / 9.6) + 1), 6.67 a row
//   + n * extra_bytes           what the owner keeps per slot
// With a limit, index and slabs are sized once for CapacityFor(limit) rows, and kPageSlack bytes of
// the limit are set aside, since memory comes in pages. Without one, both grow by a little at a
// time: the index has then 6.67 to 7.25 bytes a row, at any moment (for n > 40,000), and pages
// touched ahead of use are at most kGrowthSlack. So beyond weights, state and position a row
// costs 8 (its metadata) + 7.25, and less than .2 more from a million rows on: below 16 bytes.
// Slots of removed rows are used again; they do not go back to the system.
#ifndef STRATA_STORAGE_DRAM_STORE_H_
#define STRATA_STORAGE_DRAM_STORE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "storage/dram/index.h"
#include "storage/dram/slabs.h"

namespace strata::storage {

struct RowStoreOptions {
  size_t row_bytes = 0;  // a multiple of 4, >= 8
  Position first{0};     // all positions lie in [first, last]
  Position last{~0ull};
  Spread spread = Spread::kUniform;
  uint64_t limit_bytes = 0;  // 0 = none
  size_t extra_bytes = 0;    // per slot, kept by the owner but counted here
};

// Not thread-safe. Slots are numbers below slot_bound(); a slot names the same row until Remove.
class RowStore {
 public:
  static constexpr uint32_t kNoSlot = RowSlabs::kNoSlot;
  static constexpr uint64_t kPageSlack = 2 * 4096;
  // A page of slabs, and of the index two runs of pages not yet released or filled.
  static constexpr uint64_t kGrowthSlack = 4096 + 2 * 65536;

  static uint64_t BytesFor(const RowStoreOptions& options, uint64_t rows);
  // Most that rows and index come to without a limit, growth in progress or not.
  static uint64_t MostBytesFor(const RowStoreOptions& options, uint64_t rows);
  // Most rows that fit options.limit_bytes (which is not 0).
  static uint64_t CapacityFor(const RowStoreOptions& options);

  explicit RowStore(const RowStoreOptions& options);

  size_t size() const { return size_; }
  // Most rows at once: CapacityFor, or the slot numbers' bound without a limit.
  uint64_t capacity() const { return capacity_; }
  // Every slot in use is below this.
  uint32_t slot_bound() const { return slabs_.bound(); }
  // Rows (with owner's extra bytes) and index, now.
  uint64_t bytes() const;

  // slots[i] = slot of positions[i], or kNoSlot. Positions strictly ascend.
  void Find(std::span<const Position> positions, std::span<uint32_t> slots) const {
    index_.Find(positions, slots.data());
  }

  // The same where slots[i] holds a guess, any number: one that is right is kept without a search.
  // `in_use(slot)` tells a row's slot from one that was removed; it is asked about slots below
  // slot_bound().
  template <typename InUse>
  void Find(std::span<const Position> positions, std::span<uint32_t> slots, InUse in_use) const;

  // Makes room for `rows` more: that many Insert calls cannot fail. RESOURCE_EXHAUSTED names
  // requested and free bytes.
  absl::Status Reserve(size_t rows);
  // A hint: up to `rows` more are about to be inserted in order of position (index.h).
  void Expect(uint64_t rows) { index_.Expect(size_ + rows); }
  // kClustered: of a uniform table, too, that found its positions clustered.
  Spread spread() const { return index_.spread(); }
  // Adds an absent position; the row's bytes are uninitialised. REQUIRES: absent, room reserved.
  uint32_t Insert(Position position);
  void Remove(uint32_t slot);

  Position PositionAt(uint32_t slot) const { return slabs_.PositionAt(slot); }
  uint8_t* RowAt(uint32_t slot) { return slabs_.At(slot) + sizeof(Position); }
  const uint8_t* RowAt(uint32_t slot) const { return slabs_.At(slot) + sizeof(Position); }

  // Rows of [first, last] in order of position. Valid while no row is inserted or removed.
  class Cursor : public RowIndex::Cursor {
   public:
    Cursor(const RowStore& store, Position first, Position last)
        : RowIndex::Cursor(store.index_, first, last) {}
  };

 private:
  const RowStoreOptions options_;
  const uint64_t capacity_;
  RowSlabs slabs_;
  RowIndex index_;
  size_t size_ = 0;
};

template <typename InUse>
void RowStore::Find(std::span<const Position> positions, std::span<uint32_t> slots,
                    InUse in_use) const {
  constexpr size_t kAhead = 12;
  const size_t n = positions.size();
  const uint32_t bound = slot_bound();
  std::vector<uint32_t> wrong;  // indices
  for (size_t i = 0; i < n; ++i) {
    if (i + kAhead < n && slots[i + kAhead] < bound) {
      const uint8_t* row = slabs_.At(slots[i + kAhead]);
      __builtin_prefetch(row);
      __builtin_prefetch(row + slabs_.stride() - 1);
    }
    const uint32_t slot = slots[i];
    if (slot >= bound || !in_use(slot) || PositionAt(slot) != positions[i]) {
      wrong.push_back(static_cast<uint32_t>(i));
    }
  }
  if (wrong.empty()) return;
  std::vector<Position> missing(wrong.size());
  std::vector<uint32_t> found(wrong.size());
  for (size_t k = 0; k < wrong.size(); ++k) missing[k] = positions[wrong[k]];
  Find(missing, found);
  for (size_t k = 0; k < wrong.size(); ++k) slots[wrong[k]] = found[k];
}

}  // namespace strata::storage

#endif  // STRATA_STORAGE_DRAM_STORE_H_
