// The tiered table itself: see table.h.
// Tested by tests/storage/tiered/table_test.cc
#ifndef STRATA_STORAGE_TIERED_ROWS_H_
#define STRATA_STORAGE_TIERED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "storage/dram/store.h"
#include "storage/eviction/policy.h"
#include "storage/row/table.h"
#include "storage/tier/row_tier.h"
#include "storage/tiered/absent_memo.h"
#include "storage/tiered/options.h"

namespace strata::storage {

class TieredTable final : public RowTable {
 public:
  explicit TieredTable(const TieredOptions& options);

  // Counts the rows below as the table's: BelowContent::kAdopt.
  absl::Status Adopt();

  size_t max_batch() const override { return rows_.capacity() / 2; }
  absl::Status Resolve(std::span<const Position> positions, Access access, std::span<RowRef> refs,
                       std::span<RowSlot> slots) override;
  void Release() override;
  size_t Pin(std::span<const RowSlot> slots) override;
  void Unpin(std::span<const Position> positions, std::span<const RowSlot> slots) override;
  absl::Status Erase(std::span<const Position> positions) override;
  absl::Status Scan(Position first, Position last, const Visitor& visit) override;
  absl::Status Flush() override;
  absl::StatusOr<size_t> Tidy(size_t rows) override;
  TableCounters counters() const override;

 private:
  // Flags of a row in DRAM, two bytes per slot.
  enum : uint16_t {
    kDirty = 1,    // differs from below, or is not there
    kBelow = 2,    // the tier below may hold a version of it
    kHeld = 4,     // by the open Resolve
    kInLine = 8,   // chosen to leave, and not referenced since
    kRead = 16,    // read, and not updated since
    kOnePin = 32,  // the bits from here on count the pins of Pin
  };
  static constexpr uint16_t kPins = 0xffff & ~(kOnePin - 1);

  absl::Status Locate(std::span<const Position> positions, std::span<const RowSlot> hints);
  absl::Status Promote(std::span<const Position> positions, Access access);
  absl::Status Create(std::span<const Position> positions, std::span<RowRef> refs);
  absl::Status MakeReplaced(std::span<const Position> positions);
  absl::Status MakeRoom(size_t rows);
  bool ChooseVictims(size_t least);
  bool MayLeave(uint32_t slot) const { return (flags_[slot] & (kHeld | kPins)) == 0; }
  bool Leaves(uint32_t slot) const { return (flags_[slot] & kInLine) != 0 && MayLeave(slot); }
  size_t DirtyVictims(size_t& at, size_t most, std::vector<uint32_t>& dirty) const;
  absl::Status Evict(size_t rows);
  absl::Status WriteBack(std::vector<uint32_t>& slots);
  void Drop(uint32_t slot);
  void Hold(uint32_t slot);
  bool Reference(uint32_t slot, Access access);
  std::unique_ptr<TierCursor> NewCursor(Position first, Position last) const {
    return options_.below->NewCursor(options_.table, first, last, options_.row_bytes);
  }

  const TieredOptions options_;
  RowStore rows_;
  std::vector<uint16_t> flags_;  // (capacity)
  std::unique_ptr<EvictionPolicy> policy_;
  // The line of rows that leave next: those from next_victim_ on that Leaves says. Those before
  // tidied_ are not dirty, but for rows updated by a hint since.
  const size_t most_victims_;
  std::vector<uint32_t> victims_;
  size_t next_victim_ = 0;
  size_t tidied_ = 0;
  AbsentMemo absent_;
  uint64_t below_rows_ = 0;  // rows that are kBelow, or not in DRAM
  uint64_t only_dram_ = 0;   // the others
  // Of the call at hand: slots of the batch; slots held until Release.
  std::vector<uint32_t> slots_;
  std::vector<uint32_t> held_;
  uint64_t pinned_rows_ = 0;  // with pins of Pin; <= capacity / 2
  TableCounters counters_;
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_TIERED_ROWS_H_
