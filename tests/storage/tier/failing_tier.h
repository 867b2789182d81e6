// A real tier whose calls fail on demand.
#ifndef STRATA_TESTS_STORAGE_TIER_FAILING_TIER_H_
#define STRATA_TESTS_STORAGE_TIER_FAILING_TIER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "storage/tier/row_tier.h"

namespace strata::storage {

// Calls of one thread at a time, as those of one table are.
class FailingTier final : public RowTier {
 public:
  explicit FailingTier(std::unique_ptr<RowTier> real) : real_(std::move(real)) {}

  absl::Status Read(TableId table, std::span<const Position> positions, size_t row_bytes,
                    const Found& found) override {
    if (reads_fail) return Failed(absl::UnavailableError("read failed"));
    return real_->Read(table, positions, row_bytes, found);
  }
  absl::Status Write(TableId table, std::span<const Position> positions,
                     std::span<const uint8_t* const> rows, size_t row_bytes) override {
    for (size_t i = 1; i < positions.size(); ++i) sorted &= positions[i - 1] < positions[i];
    if (writes_fail) {
      // What a full disk does at worst: a part is written.
      const size_t half = positions.size() / 2;
      (void)real_->Write(table, positions.first(half), rows.first(half), row_bytes);
      return Failed(absl::ResourceExhaustedError("disk full"));
    }
    return real_->Write(table, positions, rows, row_bytes);
  }
  absl::Status Delete(TableId table, std::span<const Position> positions) override {
    if (writes_fail) return Failed(absl::ResourceExhaustedError("disk full"));
    return real_->Delete(table, positions);
  }
  std::unique_ptr<TierCursor> NewCursor(TableId table, Position first, Position last,
                                        size_t row_bytes) override {
    return real_->NewCursor(table, first, last, row_bytes);
  }
  absl::Status DeletePartitions(PartitionId first, PartitionId last) override {
    return real_->DeletePartitions(first, last);
  }
  absl::Status Sync() override { return real_->Sync(); }

  bool writes_fail = false;  // RESOURCE_EXHAUSTED
  bool reads_fail = false;   // UNAVAILABLE
  bool sorted = true;        // whether all writes were
  uint64_t failed = 0;       // calls

 private:
  absl::Status Failed(absl::Status s) {
    ++failed;
    return s;
  }

  const std::unique_ptr<RowTier> real_;
};

}  // namespace strata::storage

#endif  // STRATA_TESTS_STORAGE_TIER_FAILING_TIER_H_
