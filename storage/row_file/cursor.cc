#include "storage/row_file/cursor.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "storage/row_file/merge.h"

namespace strata::storage::row_file {
namespace {

constexpr size_t kBaseReadBytes = size_t{256} << 10;
constexpr size_t kDeltaReadBytes = size_t{64} << 10;

// Range by range: in each a merger of its extents and of what is in memory.
class Cursor final : public TierCursor {
 public:
  explicit Cursor(CursorOptions options)
      : options_(std::move(options)), last_{options_.table, options_.last} {
    const RowKey first{options_.table, options_.first};
    active_ = options_.active.Sorted(first, last_);
    if (options_.frozen != nullptr) frozen_ = options_.frozen->Sorted(first, last_);
    range_ = options_.version->RangeOf(first);
    Enter(first);
  }

  bool Valid() const override { return valid_; }
  Position position() const override { return rows_->key().position; }
  std::span<const uint8_t> row() const override { return {rows_->row(), options_.row_bytes}; }
  absl::Status status() const override { return status_; }
  void Next() override {
    rows_->Next();
    Settle();
  }

 private:
  void Enter(RowKey from) {
    const Range& range = options_.version->ranges[range_];
    std::vector<std::unique_ptr<RowSource>> sources;
    for (const auto* entries : {&active_, &frozen_}) {
      sources.push_back(ReadEntries(*entries));
      sources.back()->Seek(from);
    }
    for (auto delta = range.deltas.rbegin(); delta != range.deltas.rend(); ++delta) {
      sources.push_back(ReadExtent(*delta, kDeltaReadBytes, from));
    }
    if (range.base != nullptr) sources.push_back(ReadExtent(range.base, kBaseReadBytes, from));
    rows_ = Merge(std::move(sources));
    Settle();
  }

  // Goes on to a row that exists, in this range or a later one.
  void Settle() {
    valid_ = false;
    for (;;) {
      const RowKey end = options_.version->LastOf(range_);
      for (; rows_->Valid() && rows_->key() <= end && rows_->key() <= last_; rows_->Next()) {
        if (rows_->row() == nullptr) continue;
        if (rows_->row_bytes() != options_.row_bytes) {
          status_ = absl::DataLossError(
              absl::StrCat("SSD tier in ", options_.directory, ": a row of the wrong size"));
          return;
        }
        valid_ = true;
        return;
      }
      if (status_ = rows_->status(); !status_.ok()) return;
      if (end >= last_ || ++range_ == options_.version->ranges.size()) return;
      return Enter(options_.version->ranges[range_].begin);
    }
  }

  const CursorOptions options_;
  const RowKey last_;
  std::vector<Memtable::Entry> active_;
  std::vector<Memtable::Entry> frozen_;
  size_t range_ = 0;
  std::unique_ptr<RowSource> rows_;
  bool valid_ = false;
  absl::Status status_;
};

}  // namespace

std::unique_ptr<TierCursor> NewCursor(CursorOptions options) {
  return std::make_unique<Cursor>(std::move(options));
}

}  // namespace strata::storage::row_file
