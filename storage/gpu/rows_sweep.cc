// What goes through all rows of a GPU table: Scan, and writing below what is dirty.
#include <algorithm>
#include <utility>

#include "storage/gpu/rows.h"

namespace strata::storage::gpu {
namespace {

// Dirty rows named at a time: few at first, since many a scan is stopped early.
constexpr size_t kFewRows = size_t{1} << 12;
constexpr size_t kManyRows = size_t{1} << 20;
// Rows whose bytes are asked for at a time.
constexpr size_t kGroup = 1024;

// The rows of [first, last] that are newer than the table below has them, in order of position:
// dirty ones in slots, and those that wait.
class Above {
 public:
  Above(GpuBackend* backend, std::vector<GpuRow> waiting, Position first, Position last)
      : backend_(backend),
        group_rows_(std::min(kGroup, backend->max_batch())),
        waiting_(std::move(waiting)),
        next_(first),
        last_(last) {
    Fill();
  }

  bool Valid() const { return at_ < window_.size(); }
  Position position() const { return Position(window_[at_].position); }
  const uint8_t* row() const { return bytes_[at_ - group_]; }
  void Next() {
    ++at_;
    if (at_ == window_.size()) {
      Fill();
    } else if (at_ == group_ + group_rows_) {
      ReadGroup();
    }
  }
  // Not OK: it ended early.
  const absl::Status& status() const { return status_; }

 private:
  static constexpr uint8_t kWaits = 0x80;  // in flags of a row of the window: slot is a place

  void Fill() {
    window_.clear();
    at_ = 0;
    if (done_) return;
    auto dirty = backend_->Dirty(next_, last_, most_);
    if (!dirty.ok()) return Fail(dirty.status());
    done_ = dirty->size() < most_ || dirty->back().position == ~0ull;
    const Position bound = done_ ? last_ : Position(dirty->back().position);
    next_ = bound.Next();
    most_ = std::min(2 * most_, kManyRows);
    window_ = *std::move(dirty);
    for (; waited_ < waiting_.size() && waiting_[waited_].position <= bound.value; ++waited_) {
      window_.push_back(waiting_[waited_]);
      window_.back().flags |= kWaits;
    }
    std::sort(window_.begin(), window_.end(),
              [](const GpuRow& a, const GpuRow& b) { return a.position < b.position; });
    ReadGroup();
  }

  void ReadGroup() {
    group_ = at_;
    std::vector<uint32_t> slots, places;
    const size_t end = std::min(window_.size(), group_ + group_rows_);
    for (size_t i = group_; i < end; ++i) {
      (window_[i].flags & kWaits ? places : slots).push_back(window_[i].slot);
    }
    std::vector<const uint8_t*> from_slots(slots.size()), from_places(places.size());
    absl::Status s = backend_->Read(slots, from_slots);
    if (s.ok()) s = backend_->ReadStaged(places, from_places);
    if (!s.ok()) return Fail(std::move(s));
    bytes_.clear();
    size_t slot = 0, place = 0;
    for (size_t i = group_; i < end; ++i) {
      bytes_.push_back(window_[i].flags & kWaits ? from_places[place++] : from_slots[slot++]);
    }
  }

  void Fail(absl::Status status) {
    status_ = std::move(status);
    window_.clear();
    at_ = 0;
    done_ = true;
  }

  GpuBackend* const backend_;
  const size_t group_rows_;
  const std::vector<GpuRow> waiting_;
  size_t waited_ = 0;
  Position next_;
  const Position last_;
  size_t most_ = kFewRows;
  bool done_ = false;
  std::vector<GpuRow> window_;
  size_t at_ = 0;
  size_t group_ = 0;                   // the first row of those at
  std::vector<const uint8_t*> bytes_;  // (<= group_rows_)
  absl::Status status_;
};

}  // namespace

// A merge by position; where both have a row, the one above is the newer.
absl::Status GpuTable::Scan(Position first, Position last, const Visitor& visit) {
  if (!broken_.ok()) return broken_;
  first = std::max(first, first_);
  last = std::min(last, last_);
  if (last < first) return absl::OkStatus();
  Above above(backend_.get(), write_back_.Waiting(first, last), first, last);
  const auto visit_above = [&] {
    absl::Status s = visit(above.position(), {above.row(), shape_.row_bytes});
    above.Next();
    return s.ok() ? Device(above.status()) : s;
  };
  absl::Status s = Device(above.status());
  if (s.ok()) {
    s = below_.table().Scan(first, last, [&](Position position, std::span<const uint8_t> row) {
      while (above.Valid() && above.position() < position) {
        if (absl::Status v = visit_above(); !v.ok()) return v;
      }
      const bool newer = above.Valid() && above.position() == position;
      return newer ? visit_above() : visit(position, row);
    });
  }
  while (s.ok() && above.Valid()) s = visit_above();
  return s;
}

// Writes them below; they stay, and are clean.
absl::Status GpuTable::WriteRows(std::span<const GpuRow> rows) {
  std::vector<uint32_t> slots;
  std::vector<const uint8_t*> bytes;
  std::vector<GpuBelow::Row> batch;
  const size_t most = std::min(GpuBelow::kStoreRows, backend_->max_batch());
  for (size_t at = 0; at < rows.size(); at += slots.size()) {
    const auto part = rows.subspan(at, std::min(most, rows.size() - at));
    slots.clear();
    batch.clear();
    for (const GpuRow& row : part) slots.push_back(row.slot);
    bytes.resize(slots.size());
    if (absl::Status s = backend_->Read(slots, bytes); !s.ok()) return Device(std::move(s));
    for (size_t i = 0; i < part.size(); ++i) {
      batch.push_back({.position = Position(part[i].position),
                       .bytes = bytes[i],
                       .known = (part[i].flags & kGpuBelow) != 0,
                       .tag = part[i].slot});
    }
    size_t done = 0;
    absl::Status stored = below_.Store(batch, done);
    std::vector<uint32_t> clean;
    for (size_t i = 0; i < done; ++i) clean.push_back(batch[i].tag);
    if (absl::Status s = backend_->MarkClean(clean); !s.ok()) return Device(std::move(s));
    if (!stored.ok()) return stored;
  }
  return absl::OkStatus();
}

absl::Status GpuTable::Flush() {
  if (!broken_.ok()) return broken_;
  if (absl::Status s = write_back_.Write(write_back_.waiting()).status(); !s.ok()) return s;
  for (bool more = true; more;) {
    const auto rows = backend_->Dirty(first_, last_, kManyRows);
    if (!rows.ok()) return Device(rows.status());
    more = rows->size() == kManyRows;
    if (absl::Status s = WriteRows(*rows); !s.ok()) return s;
  }
  return below_.table().Flush();
}

// What waits first, then rows that are next to leave, then what the table below has to do.
absl::StatusOr<size_t> GpuTable::Tidy(size_t rows) {
  if (!broken_.ok()) return broken_;
  if (write_back_.waiting() > 0) return write_back_.Write(rows);
  const auto leaving = backend_->NextToLeave(tidy_bucket_, rows);
  if (!leaving.ok()) return Device(leaving.status());
  if (leaving->empty()) return below_.table().Tidy(rows);
  if (absl::Status s = WriteRows(*leaving); !s.ok()) return s;
  return leaving->size();
}

}  // namespace strata::storage::gpu
