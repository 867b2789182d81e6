#include "storage/tiered/rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/runtime/base/failpoints.h"
#include "storage/eviction/kind.h"
#include "storage/row/table_batch.h"
#include "storage/tiered/scan_both.h"

namespace strata::storage {

TieredTable::TieredTable(const TieredOptions& options)
    : options_(options),
      rows_(TieredStoreOptions(options)),
      flags_(rows_.capacity(), 0),
      policy_(MakeEvictionPolicy(options.eviction, rows_.capacity())),
      most_victims_(std::clamp<size_t>(rows_.capacity() / 16, 1, kMostVictims)),
      absent_(rows_.capacity()) {}

absl::Status TieredTable::Adopt() {
  auto cursor = NewCursor(options_.first, options_.last);
  for (; cursor->Valid(); cursor->Next()) ++below_rows_;
  return cursor->status();
}

absl::Status TieredTable::Locate(std::span<const Position> positions,
                                 std::span<const RowSlot> hints) {
  if (absl::Status s = CheckBatch(positions, options_.first, options_.last, max_batch()); !s.ok()) {
    return s;
  }
  slots_.resize(positions.size());
  if (hints.empty()) {
    rows_.Find(positions, slots_);
  } else {
    std::copy(hints.begin(), hints.end(), slots_.begin());
    rows_.Find(positions, slots_, [this](uint32_t slot) { return flags_[slot] != 0; });
  }
  return absl::OkStatus();
}

void TieredTable::Hold(uint32_t slot) {
  flags_[slot] |= kHeld;
  held_.push_back(slot);
}

// False: the reference was counted by the read before.
bool TieredTable::Reference(uint32_t slot, Access access) {
  const bool was_read = (flags_[slot] & kRead) != 0;
  flags_[slot] = static_cast<uint16_t>(flags_[slot] & ~(kInLine | kRead));
  if (access == Access::kRead) {
    flags_[slot] |= kRead;
  } else if (was_read) {
    return false;
  }
  return true;
}

void TieredTable::Release() {
  for (uint32_t slot : held_) flags_[slot] &= static_cast<uint16_t>(~kHeld);
  held_.clear();
}

// At most half of the rows, so that a batch of the other half always finds room.
size_t TieredTable::Pin(std::span<const RowSlot> slots) {
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] == kNoRow) continue;
    uint16_t& flags = flags_[slots[i]];
    const bool first = (flags & kPins) == 0;
    if ((first && pinned_rows_ >= rows_.capacity() / 2) || (flags & kPins) == kPins) return i;
    flags = static_cast<uint16_t>(flags + kOnePin);
    pinned_rows_ += first;
  }
  return slots.size();
}

void TieredTable::Unpin(std::span<const Position> positions, std::span<const RowSlot> slots) {
  for (size_t i = 0; i < positions.size(); ++i) {
    // A row that was erased and made again elsewhere, or here, has no pin of before.
    if (slots[i] >= rows_.slot_bound() || (flags_[slots[i]] & kPins) == 0) continue;
    if (rows_.PositionAt(slots[i]) != positions[i]) continue;
    uint16_t& flags = flags_[slots[i]];
    flags = static_cast<uint16_t>(flags - kOnePin);
    pinned_rows_ -= (flags & kPins) == 0;
  }
}

// 1. hold what is in DRAM  2. move up what is below (Promote; MakeReplaced)  3. create what is
// nowhere (Create), last, since only then nothing can fail any more  4. answer.
absl::Status TieredTable::Resolve(std::span<const Position> positions, Access access,
                                  std::span<RowRef> refs, std::span<RowSlot> slots) {
  if (absl::Status s = Locate(positions, slots); !s.ok()) return s;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const uint32_t slot = slots_[i];
    if (slot == RowStore::kNoSlot) continue;
    Hold(slot);
    if (!slots.empty() && slots[i] == slot) continue;  // counted when the hint was given
    if (!Reference(slot, access)) continue;
    policy_->OnHit(slot);
    ++counters_.hits;
  }
  std::fill(refs.begin(), refs.begin() + positions.size(), RowRef{});
  absl::Status status =
      access == Access::kReplace ? MakeReplaced(positions) : Promote(positions, access);
  if (status.ok() && access == Access::kUpdate) status = Create(positions, refs);
  if (!status.ok()) {
    Release();
    return status;
  }
  for (size_t i = 0; i < positions.size(); ++i) {
    if (slots_[i] == RowStore::kNoSlot) {
      ++counters_.absent;
      continue;
    }
    refs[i].row = rows_.RowAt(slots_[i]);
    if (access != Access::kRead) flags_[slots_[i]] |= kDirty;
  }
  std::copy_n(slots_.begin(), slots.size(), slots.begin());
  return absl::OkStatus();
}

// Reads what DRAM lacks from below, a chunk at a time: the chunk's rows are held beside the limit
// until there is room for them (making room may write below, which must not happen inside a read).
absl::Status TieredTable::Promote(std::span<const Position> positions, Access access) {
  std::vector<Position> missing;
  std::vector<uint32_t> index;
  std::vector<std::pair<uint32_t, size_t>> found;  // (index in positions, offset in bytes)
  std::vector<uint8_t> bytes;
  if (below_rows_ == 0) return absl::OkStatus();
  const size_t chunk = RowTier::ReadRowsAtOnce(options_.row_bytes);
  for (size_t i = 0; i < positions.size();) {
    missing.clear();
    index.clear();
    found.clear();
    bytes.clear();
    for (; i < positions.size() && missing.size() < chunk; ++i) {
      if (slots_[i] != RowStore::kNoSlot || absent_.Holds(positions[i])) continue;
      missing.push_back(positions[i]);
      index.push_back(static_cast<uint32_t>(i));
    }
    if (missing.empty()) break;
    absl::Status s = options_.below->Read(
        options_.table, missing, options_.row_bytes, [&](size_t k, const uint8_t* row) {
          found.emplace_back(index[k], bytes.size());
          bytes.insert(bytes.end(), row, row + options_.row_bytes);
        });
    if (!s.ok()) return s;
    for (size_t k = 0, f = 0; k < missing.size(); ++k) {
      if (f < found.size() && found[f].first == index[k]) {
        ++f;
      } else {
        absent_.Add(missing[k]);
      }
    }
    if (found.empty()) continue;
    if (s = Failpoint("tier.read"); !s.ok()) return s;
    if (s = MakeRoom(found.size()); !s.ok()) return s;
    for (const auto& [at, offset] : found) {
      const uint32_t slot = rows_.Insert(positions[at]);
      std::memcpy(rows_.RowAt(slot), bytes.data() + offset, options_.row_bytes);
      flags_[slot] = access == Access::kRead ? kBelow | kRead : kBelow;
      policy_->OnInsert(slot, positions[at]);
      Hold(slot);
      slots_[at] = slot;
    }
    counters_.ssd_reads += found.size();
  }
  return absl::OkStatus();
}

absl::Status TieredTable::Create(std::span<const Position> positions, std::span<RowRef> refs) {
  const auto absent =
      static_cast<size_t>(std::count(slots_.begin(), slots_.end(), RowStore::kNoSlot));
  if (absl::Status s = MakeRoom(absent); !s.ok()) return s;
  for (size_t i = 0; i < positions.size(); ++i) {
    if (slots_[i] != RowStore::kNoSlot) continue;
    slots_[i] = rows_.Insert(positions[i]);
    absent_.Remove(positions[i]);
    flags_[slots_[i]] = kDirty;
    policy_->OnInsert(slots_[i], positions[i]);
    Hold(slots_[i]);
    refs[i].created = true;
  }
  only_dram_ += absent;
  counters_.absent += absent;
  return absl::OkStatus();
}

// What DRAM lacks lies below, and is about to be replaced: it gets a place unread.
absl::Status TieredTable::MakeReplaced(std::span<const Position> positions) {
  const auto below =
      static_cast<size_t>(std::count(slots_.begin(), slots_.end(), RowStore::kNoSlot));
  if (absl::Status s = MakeRoom(below); !s.ok()) return s;
  for (size_t i = 0; i < positions.size(); ++i) {
    if (slots_[i] != RowStore::kNoSlot) continue;
    slots_[i] = rows_.Insert(positions[i]);
    flags_[slots_[i]] = kBelow | kDirty;
    policy_->OnInsert(slots_[i], positions[i]);
    Hold(slots_[i]);
  }
  return absl::OkStatus();
}

// The tier below first: if that fails, every row is still there.
absl::Status TieredTable::Erase(std::span<const Position> positions) {
  if (absl::Status s = Locate(positions, {}); !s.ok()) return s;
  std::vector<Position> below, unknown;
  for (size_t i = 0; i < positions.size(); ++i) {
    if (slots_[i] == RowStore::kNoSlot) {
      unknown.push_back(positions[i]);
    } else if (flags_[slots_[i]] & kBelow) {
      below.push_back(positions[i]);
    }
  }
  if (below_rows_ > 0) {
    absl::Status s =
        options_.below->Read(options_.table, unknown, options_.row_bytes,
                             [&](size_t k, const uint8_t*) { below.push_back(unknown[k]); });
    if (!s.ok()) return s;
    std::sort(below.begin(), below.end());
    if (s = options_.below->Delete(options_.table, below); !s.ok()) return s;
  }
  below_rows_ -= below.size();
  for (uint32_t slot : slots_) {
    if (slot == RowStore::kNoSlot) continue;
    if ((flags_[slot] & kBelow) == 0) --only_dram_;
    policy_->OnErase(slot);
    Drop(slot);
  }
  return absl::OkStatus();
}

absl::Status TieredTable::Scan(Position first, Position last, const Visitor& visit) {
  RowStore::Cursor dram(rows_, first, last);
  auto below = NewCursor(std::max(first, options_.first), std::min(last, options_.last));
  return ScanBoth(rows_, dram, *below, options_.row_bytes, visit);
}

TableCounters TieredTable::counters() const {
  TableCounters counters = counters_;
  counters.rows = below_rows_ + only_dram_;
  counters.dram_rows = rows_.size();
  counters.dram_bytes = rows_.bytes();
  counters.pinned = pinned_rows_;
  return counters;
}

}  // namespace strata::storage
