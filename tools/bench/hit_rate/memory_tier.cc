#include "tools/bench/hit_rate/memory_tier.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

namespace strata::bench {
namespace {

using Row = std::vector<uint8_t>;
using Rows = absl::flat_hash_map<uint64_t, Row>;  // by position

class Cursor final : public storage::TierCursor {
 public:
  explicit Cursor(std::vector<std::pair<uint64_t, Row>> rows) : rows_(std::move(rows)) {}
  bool Valid() const override { return at_ < rows_.size(); }
  Position position() const override { return Position(rows_[at_].first); }
  std::span<const uint8_t> row() const override { return rows_[at_].second; }
  void Next() override { ++at_; }
  absl::Status status() const override { return absl::OkStatus(); }

 private:
  const std::vector<std::pair<uint64_t, Row>> rows_;
  size_t at_ = 0;
};

class MemoryTier final : public storage::RowTier {
 public:
  absl::Status Read(TableId table, std::span<const Position> positions, size_t,
                    const Found& found) override {
    const Rows& rows = tables_[table];
    for (size_t i = 0; i < positions.size(); ++i) {
      const auto row = rows.find(positions[i].value);
      if (row != rows.end()) found(i, row->second.data());
    }
    return absl::OkStatus();
  }
  absl::Status Write(TableId table, std::span<const Position> positions,
                     std::span<const uint8_t* const> rows, size_t row_bytes) override {
    for (size_t i = 0; i < positions.size(); ++i) {
      tables_[table][positions[i].value].assign(rows[i], rows[i] + row_bytes);
    }
    return absl::OkStatus();
  }
  absl::Status Delete(TableId table, std::span<const Position> positions) override {
    for (const Position p : positions) tables_[table].erase(p.value);
    return absl::OkStatus();
  }
  std::unique_ptr<storage::TierCursor> NewCursor(TableId table, Position first, Position last,
                                                 size_t) override {
    std::vector<std::pair<uint64_t, Row>> rows;
    for (const auto& row : tables_[table]) {
      if (row.first >= first.value && row.first <= last.value) rows.push_back(row);
    }
    std::sort(rows.begin(), rows.end());
    return std::make_unique<Cursor>(std::move(rows));
  }
  absl::Status DeletePartitions(PartitionId, PartitionId) override {
    return absl::UnimplementedError("a tier in memory does not know partitions");
  }
  absl::Status Sync() override { return absl::OkStatus(); }

 private:
  std::map<TableId, Rows> tables_;
};

}  // namespace

std::unique_ptr<storage::RowTier> MakeMemoryTier() { return std::make_unique<MemoryTier>(); }

}  // namespace strata::bench
