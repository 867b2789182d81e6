#include "storage/tier/watched_tier.h"

namespace strata::storage {

class WatchedTier::Cursor final : public TierCursor {
 public:
  Cursor(WatchedTier* tier, std::unique_ptr<TierCursor> below)
      : tier_(tier), below_(std::move(below)) {
    NoteEnd();
  }
  bool Valid() const override { return below_->Valid(); }
  Position position() const override { return below_->position(); }
  std::span<const uint8_t> row() const override { return below_->row(); }
  void Next() override {
    below_->Next();
    NoteEnd();
  }
  absl::Status status() const override { return below_->status(); }

 private:
  void NoteEnd() {
    if (!below_->Valid()) tier_->Note(below_->status()).IgnoreError();  // status() tells it
  }

  WatchedTier* const tier_;
  const std::unique_ptr<TierCursor> below_;
};

absl::Status WatchedTier::damage() const {
  ReaderMutexLock lock(&mu_);
  return damage_;
}

absl::Status WatchedTier::Note(absl::Status status) {
  if (absl::IsDataLoss(status)) {
    MutexLock lock(&mu_);
    if (damage_.ok()) damage_ = status;
  }
  return status;
}

absl::Status WatchedTier::Read(TableId table, std::span<const Position> positions, size_t row_bytes,
                               const Found& found) {
  return Note(below_->Read(table, positions, row_bytes, found));
}

absl::Status WatchedTier::Write(TableId table, std::span<const Position> positions,
                                std::span<const uint8_t* const> rows, size_t row_bytes) {
  return Note(below_->Write(table, positions, rows, row_bytes));
}

absl::Status WatchedTier::Delete(TableId table, std::span<const Position> positions) {
  return Note(below_->Delete(table, positions));
}

std::unique_ptr<TierCursor> WatchedTier::NewCursor(TableId table, Position first, Position last,
                                                   size_t row_bytes) {
  return std::make_unique<Cursor>(this, below_->NewCursor(table, first, last, row_bytes));
}

absl::Status WatchedTier::DeletePartitions(PartitionId first, PartitionId last) {
  return Note(below_->DeletePartitions(first, last));
}

absl::Status WatchedTier::Sync() { return Note(below_->Sync()); }

}  // namespace strata::storage
