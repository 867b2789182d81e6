// A tier that remembers whether it was ever found damaged.
#ifndef STRATA_STORAGE_TIER_WATCHED_TIER_H_
#define STRATA_STORAGE_TIER_WATCHED_TIER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "proto/core/mutex.h"
#include "storage/tier/row_tier.h"

namespace strata::storage {

// Hands everything on to `below`, which it owns, and keeps the first DATA_LOSS that any call or
// cursor answers, whoever asked: no later call mends it, only a tier that is made anew. Why not the
// callers: rows are read for pulls, commits, removals, images and checkpoints alike, and what one
// of them met is true for all. Thread-safe.
class WatchedTier final : public RowTier {
 public:
  explicit WatchedTier(std::unique_ptr<RowTier> below) : below_(std::move(below)) {}

  // OK, or what is damaged and where.
  absl::Status damage() const;

  absl::Status Read(TableId table, std::span<const Position> positions, size_t row_bytes,
                    const Found& found) override;
  absl::Status Write(TableId table, std::span<const Position> positions,
                     std::span<const uint8_t* const> rows, size_t row_bytes) override;
  absl::Status Delete(TableId table, std::span<const Position> positions) override;
  std::unique_ptr<TierCursor> NewCursor(TableId table, Position first, Position last,
                                        size_t row_bytes) override;
  absl::Status DeletePartitions(PartitionId first, PartitionId last) override;
  absl::Status Sync() override;
  TierStats stats() const override { return below_->stats(); }

 private:
  class Cursor;
  absl::Status Note(absl::Status status);

  const std::unique_ptr<RowTier> below_;
  mutable Mutex mu_;
  absl::Status damage_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_TIER_WATCHED_TIER_H_
