#include "storage/rocks/cursor.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "storage/rocks/format.h"
#include "storage/rocks/reads.h"

namespace strata::storage::rocks {
namespace {

// Walks the partitions of a range: within one the rows of a table are consecutive keys.
class RocksCursor final : public TierCursor {
 public:
  RocksCursor(std::unique_ptr<rocksdb::Iterator> it, const std::string& directory,
              Partitioning partitioning, const CursorRange& range)
      : it_(std::move(it)),
        directory_(directory),
        partitioning_(partitioning),
        table_(range.table),
        last_(range.last),
        row_bytes_(range.row_bytes) {
    Seek(range.first);
  }

  bool Valid() const override { return valid_; }
  Position position() const override { return position_; }
  std::span<const uint8_t> row() const override {
    return {reinterpret_cast<const uint8_t*>(it_->value().data()), row_bytes_};
  }
  void Next() override {
    const ReaderScope reader;
    it_->Next();
    Settle();
  }
  absl::Status status() const override { return status_; }

 private:
  void Seek(Position from) {
    const RowKey key = MakeKey({partitioning_.Of(from), table_, from});
    it_->Seek(SliceOf(key));
    Settle();
  }

  // Goes on to the first row of the table at or after the iterator.
  void Settle() {
    const ReaderScope reader;
    valid_ = false;
    while (it_->Valid()) {
      const rocksdb::Slice key = it_->key();
      if (key.size() != kKeyBytes) return Damaged("a key of the wrong size");
      const auto [partition, table, position] = ReadKey(key.data());
      if (partition > partitioning_.Of(last_)) return;
      if (table == table_) {
        position_ = position;
        if (position_ > last_) return;
        if (it_->value().size() != row_bytes_) return Damaged("a row of the wrong size");
        valid_ = true;
        return;
      }
      // Another table's rows: jump over them.
      PartitionId next = partition;
      if (table > table_) {
        if (partition.value + 1 == partitioning_.count()) return;
        next = partition.Next();
        if (next > partitioning_.Of(last_)) return;
      }
      const RowKey target = MakeKey({next, table_, partitioning_.First(next)});
      it_->Seek(SliceOf(target));
    }
    status_ = Translate(it_->status(), "scan", directory_);
  }

  void Damaged(absl::string_view what) {
    status_ = absl::DataLossError(absl::StrCat("SSD tier in ", directory_, ": ", what));
  }

  const std::unique_ptr<rocksdb::Iterator> it_;
  const std::string directory_;
  const Partitioning partitioning_;
  const TableId table_;
  const Position last_;
  const size_t row_bytes_;
  bool valid_ = false;
  Position position_;
  absl::Status status_;
};

}  // namespace

std::unique_ptr<TierCursor> NewRocksCursor(std::unique_ptr<rocksdb::Iterator> it,
                                           const std::string& directory, Partitioning partitioning,
                                           const CursorRange& range) {
  return std::make_unique<RocksCursor>(std::move(it), directory, partitioning, range);
}

}  // namespace strata::storage::rocks
