#include "server/table/snapshot.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <utility>

#include "storage/row/layout.h"

namespace strata::server {

TableSnapshot::TableSnapshot(Options options)
    : options_(std::move(options)), next_(options_.first) {
  const uint64_t last = options_.last.value - options_.first.value;
  const uint64_t pieces = std::max<uint64_t>(1, options_.rows * options_.row_bytes / kPieceBytes);
  // At least as many regions as pieces, at most twice as many.
  const int bits = std::bit_width(last / pieces);
  region_bits_ = static_cast<uint32_t>(std::max(bits - 1, 0));
  saved_.resize((last >> region_bits_) + 1);
  if (options_.changed && options_.changed->empty()) done_ = true;
}

int64_t TableSnapshot::LastStep(const uint8_t* row) const {
  storage::RowMeta meta;
  std::memcpy(&meta, row + options_.row_bytes - sizeof meta, sizeof meta);
  return storage::StepOf(meta.last_step);
}

void TableSnapshot::Keep(Position position, const uint8_t* row) {
  if (!options_.steps_tell) touched_.insert(position);
  std::vector<uint8_t>& region = saved_[RegionOf(position)];
  const size_t at = region.size();
  region.resize(at + sizeof position + options_.row_bytes);
  std::memcpy(region.data() + at, &position, sizeof position);
  std::memcpy(region.data() + at + sizeof position, row, options_.row_bytes);
  held_ += sizeof position + options_.row_bytes;
}

Position TableSnapshot::RegionEnd(size_t region) const {
  const uint64_t last = options_.last.value - options_.first.value;
  const uint64_t end = region + 1 >= saved_.size() ? last : ((region + 1) << region_bits_) - 1;
  return Position(options_.first.value + std::min(end, last));
}

// A refused gradient leaves a row's last_step as it was, so that the row may be kept again: the
// first copy is the oldest.
std::vector<TableSnapshot::Saved> TableSnapshot::SavedFrom(size_t region) const {
  std::vector<Saved> found;
  const std::vector<uint8_t>& bytes = saved_[region];
  for (size_t at = 0; at < bytes.size(); at += sizeof(Position) + options_.row_bytes) {
    Saved saved;
    std::memcpy(&saved.position, bytes.data() + at, sizeof saved.position);
    saved.row = bytes.data() + at + sizeof saved.position;
    if (saved.position >= next_) found.push_back(saved);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Saved& a, const Saved& b) { return a.position < b.position; });
  found.erase(std::unique(found.begin(), found.end(),
                          [](const Saved& a, const Saved& b) { return a.position == b.position; }),
              found.end());
  return found;
}

void TableSnapshot::Emit(Position position, const uint8_t* row, RowBlock& out) const {
  out.positions.push_back(position);
  out.rows.insert(out.rows.end(), row, row + options_.row_bytes);
}

absl::Status TableSnapshot::Next(storage::RowTable& table, RowBlock& out) {
  out.table = options_.table;
  out.positions.clear();
  out.rows.clear();
  out.erased.clear();
  if (options_.changed) next_ = (*options_.changed)[next_changed_];
  const size_t region = RegionOf(next_);
  const std::vector<Saved> saved = SavedFrom(region);
  Position reached = RegionEnd(region);
  absl::Status s = options_.changed ? ReadChanged(table, reached, saved, out, reached)
                                    : ReadAll(table, reached, saved, out, reached);
  if (s.ok()) Pass(reached);
  return s;
}

// Everything up to `reached` has come out.
void TableSnapshot::Pass(Position reached) {
  const size_t region = RegionOf(reached);
  if (options_.changed) {
    const auto& all = *options_.changed;
    next_changed_ = static_cast<size_t>(
        std::upper_bound(all.begin() + static_cast<ptrdiff_t>(next_changed_), all.end(), reached) -
        all.begin());
    done_ = next_changed_ == all.size();
  } else {
    done_ = reached == options_.last;
  }
  if (reached == RegionEnd(region)) {
    held_ -= saved_[region].size();
    std::vector<uint8_t>().swap(saved_[region]);
  }
  if (done_) {
    held_ = 0;
    saved_.clear();
    touched_.clear();
  } else {
    next_ = reached.Next();
  }
}

// Merges the table's rows with the saved ones: where both have a row, the saved one is older.
absl::Status TableSnapshot::ReadAll(storage::RowTable& table, Position end,
                                    const std::vector<Saved>& saved, RowBlock& out,
                                    Position& reached) {
  size_t at = 0;
  bool full = false;
  const auto full_at = [&](Position position) {
    full = out.rows.size() >= kPieceBytes;
    if (full) reached = position;
    return full;
  };
  absl::Status s = table.Scan(next_, end, [&](Position position, std::span<const uint8_t> row) {
    for (; at < saved.size() && saved[at].position < position; ++at) {
      Emit(saved[at].position, saved[at].row, out);
      if (full_at(saved[at].position)) return absl::CancelledError();
    }
    if (at < saved.size() && saved[at].position == position) {
      Emit(position, saved[at++].row, out);
    } else if (!Touched(position, row.data())) {
      Emit(position, row.data(), out);
    }
    return full_at(position) ? absl::CancelledError() : absl::OkStatus();
  });
  if (!s.ok() && !full) return s;
  for (; at < saved.size() && !full; ++at) {
    Emit(saved[at].position, saved[at].row, out);
    full_at(saved[at].position);
  }
  if (!full) reached = end;
  return absl::OkStatus();
}

absl::Status TableSnapshot::ReadChanged(storage::RowTable& table, Position end,
                                        const std::vector<Saved>& saved, RowBlock& out,
                                        Position& reached) {
  const auto begin = options_.changed->begin() + static_cast<ptrdiff_t>(next_changed_);
  const auto stop = std::upper_bound(begin, options_.changed->end(), end);
  const size_t most = std::max<size_t>(1, kPieceBytes / options_.row_bytes);
  const size_t n = std::min({static_cast<size_t>(stop - begin), most, table.max_batch()});
  const std::span<const Position> positions(&*begin, n);
  std::vector<storage::RowRef> refs(n);
  if (absl::Status s = table.Resolve(positions, storage::Access::kRead, refs); !s.ok()) return s;
  size_t at = 0;
  for (size_t i = 0; i < n; ++i) {
    while (at < saved.size() && saved[at].position < positions[i]) ++at;
    if (at < saved.size() && saved[at].position == positions[i]) {
      Emit(positions[i], saved[at].row, out);
    } else if (refs[i].row != nullptr && !Touched(positions[i], refs[i].row)) {
      Emit(positions[i], refs[i].row, out);
    } else {
      out.erased.push_back(positions[i]);
    }
  }
  table.Release();
  reached = begin + static_cast<ptrdiff_t>(n) == stop ? end : positions.back();
  return absl::OkStatus();
}

}  // namespace strata::server
