#include "storage/dram_table.h"

#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "storage/table_batch.h"

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

  absl::Status Resolve(std::span<const Position> positions, Access access,
                       std::span<RowRef> refs) override {
    if (absl::Status s = Locate(positions); !s.ok()) return s;
    const size_t n = positions.size();
    size_t absent = 0;
    for (size_t i = 0; i < n; ++i) {
      const bool here = slots_[i] != RowStore::kNoSlot;
      absent += !here;
      refs[i] = {here ? rows_.RowAt(slots_[i]) : nullptr, false};
    }
    if (absent > 0 && access == Access::kUpdate) {
      if (absl::Status s = rows_.Reserve(absent); !s.ok()) return s;
      for (size_t i = 0; i < n; ++i) {
        if (slots_[i] == RowStore::kNoSlot)
          refs[i] = {rows_.RowAt(rows_.Insert(positions[i])), true};
      }
    }
    counters_.hits += n - absent;
    counters_.absent += absent;
    return absl::OkStatus();
  }

  void Release() override {}

  absl::Status Erase(std::span<const Position> positions) override {
    if (absl::Status s = Locate(positions); !s.ok()) return s;
    for (size_t i = 0; i < positions.size(); ++i) {
      if (slots_[i] != RowStore::kNoSlot) rows_.Remove(slots_[i]);
    }
    return absl::OkStatus();
  }

  absl::Status Scan(Position first, Position last, const Visitor& visit) override {
    for (RowStore::Cursor at(rows_, first, last); at.Valid(); at.Next()) {
      const std::span<const uint8_t> row(rows_.RowAt(at.slot()), row_bytes_);
      if (absl::Status s = visit(at.position(), row); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  absl::Status Flush() override { return absl::OkStatus(); }

  TableCounters counters() const override {
    TableCounters counters = counters_;
    counters.rows = counters.dram_rows = rows_.size();
    counters.dram_bytes = rows_.bytes();
    return counters;
  }

 private:
  absl::Status Locate(std::span<const Position> positions) {
    if (absl::Status s = CheckBatch(positions, first_, last_, max_batch()); !s.ok()) return s;
    if (slots_.size() < positions.size()) slots_.resize(positions.size());
    rows_.Find(positions, slots_);
    return absl::OkStatus();
  }

  const Position first_, last_;
  const size_t row_bytes_;
  RowStore rows_;
  std::vector<uint32_t> slots_;  // of the batch at hand
  TableCounters counters_;
};

}  // namespace

std::unique_ptr<RowTable> MakeDramTable(const DramTableOptions& options) {
  return std::make_unique<DramTable>(options);
}

}  // namespace strata::storage
