#include "storage/tiered_table.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "storage/dram_table.h"
#include "storage/table_batch.h"

namespace strata::storage {
namespace {

RowStoreOptions StoreOptions(const TieredOptions& options) {
  return {.row_bytes = options.row_bytes,
          .first = options.first,
          .last = options.last,
          .spread = options.spread,
          .limit_bytes = options.dram_limit_bytes,
          .extra_bytes = 1 + EvictionBytesPerSlot(options.eviction)};
}

// Flags of a row in DRAM, one byte per slot.
enum : uint8_t {
  kDirty = 1,   // differs from below, or is not there
  kBelow = 2,   // the tier below holds a version of it
  kPinned = 4,  // of the open Resolve
  kOnePin = 8,  // the bits from here on count the pins of Pin
};
constexpr uint8_t kPins = 0xff & ~(kOnePin - 1);

constexpr size_t kFlushRows = 1 << 16;

class TieredTable final : public RowTable {
 public:
  explicit TieredTable(const TieredOptions& options)
      : options_(options),
        rows_(StoreOptions(options)),
        flags_(rows_.capacity(), 0),
        policy_(MakeEvictionPolicy(options.eviction, rows_.capacity())) {}

  absl::Status Adopt() {
    auto cursor = NewCursor(options_.first, options_.last);
    for (; cursor->Valid(); cursor->Next()) ++below_rows_;
    return cursor->status();
  }

  size_t max_batch() const override { return rows_.capacity() / 2; }
  absl::Status Resolve(std::span<const Position> positions, Access access, std::span<RowRef> refs,
                       std::span<RowSlot> slots) override;
  void Release() override;
  size_t Pin(std::span<const RowSlot> slots) override;
  void Unpin(std::span<const Position> positions, std::span<const RowSlot> slots) override;
  absl::Status Erase(std::span<const Position> positions) override;
  absl::Status Scan(Position first, Position last, const Visitor& visit) override;
  absl::Status Flush() override;
  TableCounters counters() const override;

 private:
  absl::Status Locate(std::span<const Position> positions, std::span<const RowSlot> hints);
  absl::Status Promote(std::span<const Position> positions);
  absl::Status Create(std::span<const Position> positions, std::span<RowRef> refs);
  absl::Status MakeRoom(size_t rows);
  absl::Status WriteBack(std::vector<uint32_t>& slots);
  void Drop(uint32_t slot);
  void Hold(uint32_t slot);
  std::unique_ptr<TierCursor> NewCursor(Position first, Position last) const {
    return options_.below->NewCursor(options_.table, first, last, options_.row_bytes);
  }

  const TieredOptions options_;
  RowStore rows_;
  std::vector<uint8_t> flags_;  // (capacity)
  std::unique_ptr<EvictionPolicy> policy_;
  uint64_t below_rows_ = 0;  // rows with a version below
  uint64_t only_dram_ = 0;   // rows without
  // Of the call at hand: slots of the batch; slots held until Release.
  std::vector<uint32_t> slots_;
  std::vector<uint32_t> pinned_;
  uint64_t pinned_rows_ = 0;  // with pins of Pin; <= capacity / 2
  TableCounters counters_;
};

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
  flags_[slot] |= kPinned;
  pinned_.push_back(slot);
}

void TieredTable::Release() {
  for (uint32_t slot : pinned_) flags_[slot] &= static_cast<uint8_t>(~kPinned);
  pinned_.clear();
}

// At most half of the rows, so that a batch of the other half always finds room.
size_t TieredTable::Pin(std::span<const RowSlot> slots) {
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] == kNoRow) continue;
    uint8_t& flags = flags_[slots[i]];
    const bool first = (flags & kPins) == 0;
    if ((first && pinned_rows_ >= rows_.capacity() / 2) || (flags & kPins) == kPins) return i;
    flags = static_cast<uint8_t>(flags + kOnePin);
    pinned_rows_ += first;
  }
  return slots.size();
}

void TieredTable::Unpin(std::span<const Position> positions, std::span<const RowSlot> slots) {
  for (size_t i = 0; i < positions.size(); ++i) {
    // A row that was erased and made again elsewhere, or here, has no pin of before.
    if (slots[i] >= rows_.slot_bound() || (flags_[slots[i]] & kPins) == 0) continue;
    if (rows_.PositionAt(slots[i]) != positions[i]) continue;
    uint8_t& flags = flags_[slots[i]];
    flags = static_cast<uint8_t>(flags - kOnePin);
    pinned_rows_ -= (flags & kPins) == 0;
  }
}

// 1. hold what is in DRAM  2. move up what is below (Promote)  3. create what is nowhere (Create),
// last, since only then nothing can fail any more  4. answer.
absl::Status TieredTable::Resolve(std::span<const Position> positions, Access access,
                                  std::span<RowRef> refs, std::span<RowSlot> slots) {
  if (absl::Status s = Locate(positions, slots); !s.ok()) return s;
  for (uint32_t slot : slots_) {
    if (slot == RowStore::kNoSlot) continue;
    Hold(slot);
    policy_->OnHit(slot);
  }
  counters_.hits += pinned_.size();
  std::fill(refs.begin(), refs.begin() + positions.size(), RowRef{});
  absl::Status status = Promote(positions);
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
    if (access == Access::kUpdate) flags_[slots_[i]] |= kDirty;
  }
  std::copy_n(slots_.begin(), slots.size(), slots.begin());
  return absl::OkStatus();
}

// Reads what DRAM lacks from below, a chunk at a time: the chunk's rows are held beside the limit
// until there is room for them (making room may write below, which must not happen inside a read).
absl::Status TieredTable::Promote(std::span<const Position> positions) {
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
      if (slots_[i] != RowStore::kNoSlot) continue;
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
    if (s = MakeRoom(found.size()); !s.ok()) return s;
    for (const auto& [at, offset] : found) {
      const uint32_t slot = rows_.Insert(positions[at]);
      std::memcpy(rows_.RowAt(slot), bytes.data() + offset, options_.row_bytes);
      flags_[slot] = kBelow;
      policy_->OnInsert(slot);
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
    flags_[slots_[i]] = kDirty;
    policy_->OnInsert(slots_[i]);
    Hold(slots_[i]);
    refs[i].created = true;
  }
  only_dram_ += absent;
  counters_.absent += absent;
  return absl::OkStatus();
}

// Room for `rows` more in DRAM. When rows must leave, a sixteenth of the tier leaves at once, so
// that write-backs are long sorted runs.
absl::Status TieredTable::MakeRoom(size_t rows) {
  const uint64_t free = rows_.capacity() - rows_.size();
  if (free < rows) {
    const size_t must = rows - free;
    const size_t want = std::max<size_t>(must, rows_.capacity() / 16);
    std::vector<uint32_t> victims;
    policy_->Choose(
        want, [this](uint32_t slot) { return (flags_[slot] & (kPinned | kPins)) == 0; }, victims);
    std::vector<uint32_t> dirty;
    for (uint32_t slot : victims) {
      if (flags_[slot] & kDirty) dirty.push_back(slot);
    }
    if (absl::Status s = WriteBack(dirty); !s.ok()) return s;
    for (uint32_t slot : victims) Drop(slot);
    counters_.evicted += victims.size();
  }
  return rows_.Reserve(rows);
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
  if (absl::Status s = options_.below->Write(options_.table, positions, bytes, options_.row_bytes);
      !s.ok()) {
    return s;
  }
  for (uint32_t slot : slots) {
    if ((flags_[slot] & kBelow) == 0) {
      --only_dram_;
      ++below_rows_;
    }
    flags_[slot] = static_cast<uint8_t>((flags_[slot] | kBelow) & ~kDirty);
  }
  counters_.written_back += slots.size();
  return absl::OkStatus();
}

void TieredTable::Drop(uint32_t slot) {
  policy_->OnRemove(slot);
  pinned_rows_ -= (flags_[slot] & kPins) != 0;
  flags_[slot] = 0;
  rows_.Remove(slot);
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
    Drop(slot);
  }
  return absl::OkStatus();
}

// A merge of both tiers; where both have a row, DRAM's is the newer.
absl::Status TieredTable::Scan(Position first, Position last, const Visitor& visit) {
  RowStore::Cursor dram(rows_, first, last);
  auto below = NewCursor(std::max(first, options_.first), std::min(last, options_.last));
  while (dram.Valid() || below->Valid()) {
    const bool from_dram =
        dram.Valid() && (!below->Valid() || dram.position() <= below->position());
    absl::Status s;
    if (from_dram) {
      const bool both = below->Valid() && below->position() == dram.position();
      s = visit(dram.position(), {rows_.RowAt(dram.slot()), options_.row_bytes});
      if (both) below->Next();
      dram.Next();
    } else {
      s = visit(below->position(), below->row());
      below->Next();
    }
    if (!s.ok()) return s;
    if (!below->Valid() && !below->status().ok()) return below->status();
  }
  return below->status();
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

TableCounters TieredTable::counters() const {
  TableCounters counters = counters_;
  counters.rows = below_rows_ + only_dram_;
  counters.dram_rows = rows_.size();
  counters.dram_bytes = rows_.bytes();
  counters.pinned = pinned_rows_;
  return counters;
}

}  // namespace

uint64_t MinimumDramBytes(size_t row_bytes) {
  TieredOptions options;
  options.row_bytes = row_bytes;
  return RowStore::BytesFor(StoreOptions(options), kMinimumRows) + RowStore::kPageSlack;
}

absl::StatusOr<std::unique_ptr<RowTable>> MakeTieredTable(const TieredOptions& options) {
  if (options.row_bytes < 8 || options.row_bytes % 4 != 0) {
    return absl::InvalidArgumentError(absl::StrCat("row_bytes is ", options.row_bytes,
                                                   "; it must be a multiple of 4, at least 8"));
  }
  if (options.last < options.first) {
    return absl::InvalidArgumentError(absl::StrCat("the range of positions ends at ",
                                                   options.last.value, ", before its start ",
                                                   options.first.value));
  }
  if (options.dram_limit_bytes == 0) {
    return MakeDramTable({.row_bytes = options.row_bytes,
                          .first = options.first,
                          .last = options.last,
                          .spread = options.spread});
  }
  const uint64_t least = MinimumDramBytes(options.row_bytes);
  if (options.dram_limit_bytes < least) {
    return absl::InvalidArgumentError(
        absl::StrCat("a DRAM limit of ", options.dram_limit_bytes,
                     " bytes for a table of one shard; rows of ", options.row_bytes,
                     " bytes need at least ", least, ": raise spec.storage.dramBytesPerServer"));
  }
  if (options.below == nullptr) {
    return absl::InvalidArgumentError("a DRAM limit needs a tier below");
  }
  auto table = std::make_unique<TieredTable>(options);
  if (options.below_content == BelowContent::kAdopt) {
    if (absl::Status s = table->Adopt(); !s.ok()) return s;
  }
  return table;
}

}  // namespace strata::storage
