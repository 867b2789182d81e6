#include "storage/dram/table.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "storage/row/table_batch.h"

namespace strata::storage {
namespace {

class DramTable final : public RowTable {
 public:
  explicit DramTable(const DramTableOptions& options)
      : first_(options.first),
        last_(options.last),
        row_bytes_(options.row_bytes),
        rows_({.row_bytes = options.row_bytes,
               .first = options.first,
               .last = options.last,
               .spread = options.spread,
               .limit_bytes = options.limit_bytes}) {}

  size_t max_batch() const override { return std::numeric_limits<uint32_t>::max(); }

  void Expect(uint64_t rows) override { rows_.Expect(rows); }

  absl::Status Resolve(std::span<const Position> positions, Access access, std::span<RowRef> refs,
                       std::span<RowSlot> slots) override {
    if (absl::Status s = Locate(positions, slots); !s.ok()) return s;
    const size_t n = positions.size();
    size_t absent = 0;
    for (size_t i = 0; i < n; ++i) {
      const bool here = slots_[i] != RowStore::kNoSlot;
      absent += !here;
      refs[i] = {here ? rows_.RowAt(slots_[i]) : nullptr, false};
    }
    if (absent > 0 && access != Access::kRead) {
      if (absl::Status s = rows_.Reserve(absent); !s.ok()) return s;
      for (size_t i = 0; i < n; ++i) {
        if (slots_[i] != RowStore::kNoSlot) continue;
        slots_[i] = rows_.Insert(positions[i]);
        if (slots_[i] < removed_.size()) removed_[slots_[i]] = false;
        refs[i] = {rows_.RowAt(slots_[i]), true};
      }
    }
    std::copy_n(slots_.begin(), slots.size(), slots.begin());
    counters_.hits += n - absent;
    counters_.absent += absent;
    return absl::OkStatus();
  }

  void Release() override {}

  // Rows never leave DRAM.
  size_t Pin(std::span<const RowSlot> slots) override { return slots.size(); }
  void Unpin(std::span<const Position>, std::span<const RowSlot>) override {}

  absl::Status Erase(std::span<const Position> positions) override {
    if (absl::Status s = Locate(positions, {}); !s.ok()) return s;
    for (size_t i = 0; i < positions.size(); ++i) {
      if (slots_[i] == RowStore::kNoSlot) continue;
      rows_.Remove(slots_[i]);
      if (removed_.size() <= slots_[i]) removed_.resize(rows_.slot_bound());
      removed_[slots_[i]] = true;
    }
    return absl::OkStatus();
  }

  absl::Status Scan(Position first, Position last, const Visitor& visit) override {
    constexpr size_t kAhead = 8;
    for (RowStore::Cursor at(rows_, first, last); at.Valid(); at.Next()) {
      if (const uint32_t slot = at.SlotAfter(kAhead); slot != RowStore::kNoSlot) {
        const uint8_t* next = rows_.RowAt(slot);
        for (size_t line = 0; line < row_bytes_; line += 64) __builtin_prefetch(next + line);
      }
      const std::span<const uint8_t> row(rows_.RowAt(at.slot()), row_bytes_);
      if (absl::Status s = visit(at.position(), row); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  absl::Status Flush() override { return absl::OkStatus(); }
  absl::StatusOr<size_t> Tidy(size_t) override { return size_t{0}; }

  TableCounters counters() const override {
    TableCounters counters = counters_;
    counters.rows = counters.dram_rows = rows_.size();
    counters.dram_bytes = rows_.bytes();
    return counters;
  }

 private:
  absl::Status Locate(std::span<const Position> positions, std::span<const RowSlot> hints) {
    if (absl::Status s = CheckBatch(positions, first_, last_, max_batch()); !s.ok()) return s;
    if (slots_.size() < positions.size()) slots_.resize(positions.size());
    if (hints.empty()) {
      rows_.Find(positions, slots_);
      return absl::OkStatus();
    }
    std::copy(hints.begin(), hints.end(), slots_.begin());
    rows_.Find(positions, slots_,
               [this](uint32_t slot) { return slot >= removed_.size() || !removed_[slot]; });
    return absl::OkStatus();
  }

  const Position first_, last_;
  const size_t row_bytes_;
  RowStore rows_;
  std::vector<uint32_t> slots_;  // of the batch at hand
  // Freed slots that hold no row again, by slot; empty until a row is erased. One bit a slot,
  // beside the limit.
  std::vector<bool> removed_;
  TableCounters counters_;
};

}  // namespace

std::unique_ptr<RowTable> MakeDramTable(const DramTableOptions& options) {
  return std::make_unique<DramTable>(options);
}

}  // namespace strata::storage
