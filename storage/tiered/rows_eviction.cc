// Rows that leave a tiered table's DRAM, and what is written below.
#include <algorithm>
#include <utility>

#include "proto/core/mutation.h"
#include "storage/tiered/rows.h"

namespace strata::storage {
namespace {

// Rows that one write below takes, where more are dirty.
constexpr size_t kWriteRows = 4096;
constexpr size_t kFlushRows = 1 << 16;

}  // namespace

// Room for `rows` more in DRAM.
absl::Status TieredTable::MakeRoom(size_t rows) {
  while (rows_.capacity() - rows_.size() < rows) {
    const size_t must = rows - (rows_.capacity() - rows_.size());
    if (next_victim_ == victims_.size() && !ChooseVictims(must)) break;
    if (absl::Status s = Evict(must); !s.ok()) return s;
  }
  return rows_.Reserve(rows);
}

// A new line in place of the old one. False: no row may leave.
bool TieredTable::ChooseVictims(size_t least) {
  for (; next_victim_ < victims_.size(); ++next_victim_) {
    flags_[victims_[next_victim_]] &= static_cast<uint16_t>(~kInLine);
  }
  victims_.clear();
  next_victim_ = tidied_ = 0;
  policy_->Choose(
      std::max(least, most_victims_), [this](uint32_t slot) { return MayLeave(slot); }, victims_);
  for (const uint32_t slot : victims_) flags_[slot] |= kInLine;
  return !victims_.empty();
}

// Appends up to `most` dirty rows of the line from `at` on, and moves `at` behind them.
size_t TieredTable::DirtyVictims(size_t& at, size_t most, std::vector<uint32_t>& dirty) const {
  const size_t before = dirty.size();
  for (; at < victims_.size() && dirty.size() - before < most; ++at) {
    if (Leaves(victims_[at]) && (flags_[victims_[at]] & kDirty) != 0) dirty.push_back(victims_[at]);
  }
  return dirty.size() - before;
}

// Up to `rows` rows of the line leave: the rest of the line at most.
absl::Status TieredTable::Evict(size_t rows) {
  std::vector<uint32_t> leaving, dirty;
  size_t end = next_victim_;
  for (; end < victims_.size() && leaving.size() < rows; ++end) {
    const uint32_t slot = victims_[end];
    if (!Leaves(slot)) continue;
    leaving.push_back(slot);
    if ((flags_[slot] & kDirty) && !STRATA_MUTATION("tier.evicts_unwritten")) dirty.push_back(slot);
  }
  if (!dirty.empty()) {
    size_t written = std::max(end, tidied_);
    DirtyVictims(written, kWriteRows - std::min(kWriteRows, dirty.size()), dirty);
    if (absl::Status s = WriteBack(dirty); !s.ok()) return s;
    tidied_ = written;
  }
  next_victim_ = end;
  for (const uint32_t slot : leaving) {
    policy_->OnEvict(slot, rows_.PositionAt(slot));
    Drop(slot);
  }
  counters_.evicted += leaving.size();
  return absl::OkStatus();
}

absl::StatusOr<size_t> TieredTable::Tidy(size_t rows) {
  if (rows_.capacity() - rows_.size() > most_victims_) return size_t{0};
  if (victims_.size() - next_victim_ <= most_victims_ / 4) ChooseVictims(0);
  std::vector<uint32_t> dirty;
  size_t at = std::max(tidied_, next_victim_);
  const size_t found = DirtyVictims(at, rows, dirty);
  if (absl::Status s = WriteBack(dirty); !s.ok()) return s;
  tidied_ = at;
  counters_.written_ahead += found;
  return found;
}

// Writes the rows of `slots` below, in order of position; they are clean afterwards.
absl::Status TieredTable::WriteBack(std::vector<uint32_t>& slots) {
  if (slots.empty()) return absl::OkStatus();
  std::sort(slots.begin(), slots.end(),
            [this](uint32_t a, uint32_t b) { return rows_.PositionAt(a) < rows_.PositionAt(b); });
  std::vector<Position> positions(slots.size());
  std::vector<const uint8_t*> bytes(slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    positions[i] = rows_.PositionAt(slots[i]);
    bytes[i] = rows_.RowAt(slots[i]);
  }
  const absl::Status s =
      options_.below->Write(options_.table, positions, bytes, options_.row_bytes);
  // What failed may have been written in part: a row that is erased now must be erased below too.
  for (uint32_t slot : slots) {
    if ((flags_[slot] & kBelow) == 0) {
      --only_dram_;
      ++below_rows_;
    }
    flags_[slot] |= kBelow;
    if (s.ok()) flags_[slot] &= static_cast<uint16_t>(~kDirty);
  }
  if (!s.ok()) return s;
  counters_.written_back += slots.size();
  return absl::OkStatus();
}

void TieredTable::Drop(uint32_t slot) {
  pinned_rows_ -= (flags_[slot] & kPins) != 0;
  flags_[slot] = 0;
  rows_.Remove(slot);
}

absl::Status TieredTable::Flush() {
  std::vector<uint32_t> dirty;
  for (RowStore::Cursor at(rows_, options_.first, options_.last); at.Valid(); at.Next()) {
    if (flags_[at.slot()] & kDirty) dirty.push_back(at.slot());
    if (dirty.size() < kFlushRows) continue;
    if (absl::Status s = WriteBack(dirty); !s.ok()) return s;
    dirty.clear();
  }
  return WriteBack(dirty);
}

}  // namespace strata::storage
