#include "server/table/shard_table.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "storage/row/births.h"
#include "storage/row/touch.h"
#include "storage/row/update.h"

namespace strata::server {
namespace {

constexpr size_t kAhead = 8;  // rows fetched into the cache before they are read

// Called row by row with sizes known only at run time, where a call of memcpy would cost more than
// the copy: 32 bytes at a time, the last ones overlapping.
inline void CopyFloats(const void* from, size_t bytes, void* to) {
  constexpr size_t kBlock = 32;
  const auto* in = static_cast<const uint8_t*>(from);
  auto* out = static_cast<uint8_t*>(to);
  if (bytes < kBlock) {
    std::memcpy(out, in, bytes);
    return;
  }
  for (size_t at = 0; at + kBlock < bytes; at += kBlock) std::memcpy(out + at, in + at, kBlock);
  std::memcpy(out + bytes - kBlock, in + bytes - kBlock, kBlock);
}

inline void Fetch(const storage::RowRef& ref, size_t bytes) {
  // No arithmetic on the pointer: where there is no row, it is null.
  const uintptr_t row = reinterpret_cast<uintptr_t>(ref.row);
  __builtin_prefetch(ref.row);
  __builtin_prefetch(reinterpret_cast<const void*>(row + bytes - 1));
}

}  // namespace

ShardTable::ShardTable(const TableSpec& spec, uint64_t seed,
                       std::unique_ptr<storage::RowTable> rows, Partitioning partitioning)
    : spec_(spec),
      layout_(storage::RowLayout::For(spec)),
      stride_(spec.push_dim()),
      seed_(seed),
      rows_(std::move(rows)),
      preimages_(layout_.dim, rows_->device_rows()),
      admission_(spec.life_cycle.admission, spec.id, seed, partitioning),
      removal_(spec.life_cycle.removal, layout_),
      removed_images_(layout_.dim),
      partitioning_(partitioning),
      device_(rows_->device_rows()),
      updates_on_device_(device_ != nullptr && !layout_.scored &&
                         layout_.runs.size() <= storage::kMostDeviceRuns),
      stage_(device_, rows_->max_batch()) {
  for (const storage::SegmentLayout& s : layout_.runs) {
    scalars_.emplace_back(s.optimizer);
  }
}

void ShardTable::CountFrom(uint64_t earlier_commits) {
  earlier_commits_ = earlier_commits;
  for (ops::ScalarSource& source : scalars_) source.CountFrom(earlier_commits);
}

absl::Status ShardTable::Locate(std::span<const Position> positions, storage::Access access,
                                std::span<storage::RowSlot> slots) {
  if (device_ == nullptr) return Resolve(positions, access, slots);
  refs_.resize(positions.size());
  return device_->Locate(positions, access, refs_, slots);
}

absl::Status ShardTable::Resolve(std::span<const Position> positions, storage::Access access,
                                 std::span<storage::RowSlot> slots) {
  refs_.resize(positions.size());
  return rows_->Resolve(positions, access, refs_, slots);
}

std::span<storage::RowSlot> ShardTable::Slots(KeptRows* kept, size_t first, size_t n) {
  if (kept == nullptr) return {};
  return std::span(kept->slots).subspan(first, n);
}

void ShardTable::PinMore(KeptRows& kept, size_t first, size_t n) {
  if (kept.pinned < first || kept.pinned >= first + n) return;
  kept.pinned += rows_->Pin(Slots(&kept, kept.pinned, first + n - kept.pinned));
}

void ShardTable::Unpin(std::span<const Position> positions, KeptRows& kept) {
  if (kept.pinned == 0) return;
  rows_->Unpin(positions.first(kept.pinned), Slots(&kept, 0, kept.pinned));
  kept.pinned = 0;
}

absl::Status ShardTable::Warm(std::span<const Position> positions, KeptRows& kept) {
  if (positions.size() > rows_->max_batch() / 2) return absl::OkStatus();
  const size_t chunk = std::min(kWarmRows, rows_->max_batch());
  for (size_t at = 0; at < positions.size() && kept.pinned == at; at += chunk) {
    const auto part = positions.subspan(at, std::min(chunk, positions.size() - at));
    absl::Status s = Locate(part, storage::Access::kRead, Slots(&kept, at, part.size()));
    if (!s.ok()) return s;
    PinMore(kept, at, part.size());
    rows_->Release();
  }
  return absl::OkStatus();
}

absl::Status ShardTable::Read(std::span<const Position> positions, void* to, const ReadAs& as) {
  if (as.there != nullptr) return ReadThere(positions, as);
  auto* out = static_cast<uint8_t*>(to);
  const size_t out_bytes = ops::EncodedRowBytes(as.codec, layout_.dim);
  const size_t chunk = std::min(kChunkRows, rows_->max_batch());
  const size_t row_bytes = size_t{layout_.dim} * 4;
  for (size_t at = 0; at < positions.size(); at += chunk) {
    const auto part = positions.subspan(at, std::min(chunk, positions.size() - at));
    absl::Status s = Locate(part, storage::Access::kRead, Slots(as.kept, at, part.size()));
    if (!s.ok()) return s;
    if (as.kept != nullptr) PinMore(*as.kept, at, part.size());
    if (device_ != nullptr) s = device_->Gather(as.codec, layout_.dim, out);
    if (!s.ok()) {
      rows_->Release();
      return s;
    }
    for (size_t i = 0; i < part.size(); ++i, out += out_bytes) {
      if (refs_[i].on_device) continue;
      if (i + kAhead < part.size()) Fetch(refs_[i + kAhead], row_bytes);
      const uint8_t* row = refs_[i].row;
      if (row == nullptr) {
        initial_.resize(layout_.dim);
        storage::InitialWeights(spec_, layout_, seed_, spec_.KeyAtPosition(part[i]),
                                initial_.data());
        row = reinterpret_cast<const uint8_t*>(initial_.data());
      }
      if (as.codec == ops::RowCodec::kFloat32) {
        CopyFloats(row, row_bytes, out);
      } else {
        ops::EncodeRow(as.codec, reinterpret_cast<const float*>(row), layout_.dim, out);
      }
    }
    rows_->Release();
  }
  return absl::OkStatus();
}

absl::Status ShardTable::ReadPreimages(std::span<const Position> positions, void* to,
                                       const ReadAs& as) {
  if (absl::Status s = preimages_.BringToHost(); !s.ok()) return s;
  if (absl::Status s = Read(positions, to, as); !s.ok()) return s;
  if (as.there != nullptr) return ReadPreimagesThere(positions, as.there);
  auto* out = static_cast<uint8_t*>(to);
  PreImages::Cursor cursor(preimages_);
  for (const Position p : positions) {
    if (const float* before = cursor.Find(p)) {
      ops::EncodeRow(as.codec, before, layout_.dim, out);
    }
    out += ops::EncodedRowBytes(as.codec, layout_.dim);
  }
  return absl::OkStatus();
}

absl::Status ShardTable::Apply(const TableSums& sums, UpdateStep step, bool keep_preimages,
                               size_t& done) {
  // A large table takes the rows of a step wherever they lie; a small one is told.
  constexpr uint64_t kLarge = 16;
  const size_t most =
      sums.values_there == nullptr ? std::min(kChunkRows, rows_->max_batch()) : ThereRows();
  if (done == 0 && rows_->counters().rows < kLarge * sums.size()) rows_->Expect(sums.size());
  while (done < sums.size()) {
    if (absl::Status s = ErasePending(); !s.ok()) return s;
    const size_t n = std::min(most, sums.size() - done);
    Chunk chunk;
    if (absl::Status s = AdmitChunk(sums, done, n, step, chunk); !s.ok()) return s;
    if (absl::Status s = ApplyChunk(chunk, step, keep_preimages); !s.ok()) return s;
    admitted_.decided = false;
    done += n;
  }
  if (sums.kept != nullptr) Unpin(sums.positions, *sums.kept);
  return ErasePending();
}

// 1. hold the rows  2. fill those that are born  3. tell who watches  4. keep what they weighed
// (KeepWeights)  5. update them, where they lie  6. count, and note what changed.
absl::Status ShardTable::ApplyChunk(const Chunk& chunk, UpdateStep step, bool keep_preimages) {
  const auto positions = chunk.positions;
  absl::Status s = updates_on_device_ ? Locate(positions, storage::Access::kUpdate, chunk.slots)
                                      : Resolve(positions, storage::Access::kUpdate, chunk.slots);
  if (!s.ok()) return s;
  s = FillBorn(positions);
  if (s.ok() && (!snapshots_.empty() || changes_.active())) {
    if (updates_on_device_) s = device_->CopyRows(refs_);
    if (s.ok()) TellWatchers(positions, refs_);
  }
  if (s.ok() && keep_preimages) s = KeepWeights(positions);
  if (s.ok()) s = Update(chunk, step);
  if (!s.ok()) {
    rows_->Release();
    return s;
  }
  const uint64_t refused_before = refused_rows_;
  for (size_t i = 0; i < positions.size(); ++i) {
    refused_rows_ += (outcome_[i] & storage::kOutcomeRefused) != 0;
    clipped_rows_ += (outcome_[i] & storage::kOutcomeClipped) != 0;
    const bool applied = (outcome_[i] & storage::kOutcomeApplied) != 0;
    if (!applied && refs_[i].created) EraseLater(positions[i]);
  }
  if (refused_rows_ > refused_before) NoteRefused(positions);
  NoteChanges(positions,
              [this](size_t i) { return (outcome_[i] & storage::kOutcomeApplied) != 0; });
  rows_->Release();
  return absl::OkStatus();
}

void ShardTable::NoteRefused(std::span<const Position> positions) {
  for (size_t i = 0; i < positions.size(); ++i) {
    if ((outcome_[i] & storage::kOutcomeRefused) == 0) continue;
    first_refused_.Add(spec_.id, spec_.KeyAtPosition(positions[i]));
  }
}

// New rows are computed where they are to lie. Only hashed tables have rows on a device.
absl::Status ShardTable::FillBorn(std::span<const Position> positions) {
  born_.clear();
  born_keys_.clear();
  for (size_t i = 0; i < positions.size(); ++i) {
    if (!refs_[i].created) continue;
    const Key key = spec_.KeyAtPosition(positions[i]);
    if (refs_[i].on_device) {
      born_.push_back(static_cast<uint32_t>(i));
      born_keys_.push_back(key);
    } else {
      storage::InitialRow(spec_, layout_, seed_, key, refs_[i].row);
    }
  }
  if (born_.empty()) return absl::OkStatus();
  return device_->InitializeRows({&spec_, &layout_, seed_, born_keys_}, born_);
}

absl::Status ShardTable::KeepWeights(std::span<const Position> positions) {
  const size_t n = positions.size();
  const auto kept = preimages_.KeepThere(positions, refs_);
  if (!kept.ok() || *kept) return kept.status();
  float* out = preimages_.Extend(positions);
  if (updates_on_device_) {
    absl::Status s =
        device_->Gather(ops::RowCodec::kFloat32, layout_.dim, reinterpret_cast<uint8_t*>(out));
    if (!s.ok()) return s;
  }
  for (size_t i = 0; i < n; ++i, out += layout_.dim) {
    if (refs_[i].on_device) continue;
    if (i + kAhead < n) Fetch(refs_[i + kAhead], size_t{layout_.dim} * 4);
    CopyFloats(refs_[i].row, size_t{layout_.dim} * 4, out);
  }
  return absl::OkStatus();
}

// outcome_: of all rows. What follows an update in a row's metadata is done where the row lies.
absl::Status ShardTable::Update(const Chunk& chunk, UpdateStep step) {
  const size_t n = chunk.positions.size();
  outcome_.resize(n);
  scalars_now_.clear();
  for (ops::ScalarSource& source : scalars_) {
    scalars_now_.push_back(source.At(step.number, step.examples));
  }
  const storage::RowUpdate update{.layout = &layout_,
                                  .scalars = scalars_now_,
                                  .sums = chunk.values,
                                  .sums_there = chunk.values_there,
                                  .stride = stride_,
                                  .step = static_cast<uint32_t>(step.number)};
  host_rows_.resize(n);
  size_t here = 0;
  for (size_t i = 0; i < n; ++i) {
    host_rows_[i] = refs_[i].on_device ? nullptr : refs_[i].row;
    here += host_rows_[i] != nullptr;
  }
  if (here < n) {
    device_outcome_.resize(n);
    if (absl::Status s = device_->Apply(update, device_outcome_.data()); !s.ok()) return s;
  }
  if (here == 0) {
    outcome_.swap(device_outcome_);
    return absl::OkStatus();
  }
  if (chunk.values_there != nullptr) {
    if (absl::Status s = UpdateFromThere(chunk, update); !s.ok()) return s;
  } else {
    storage::UpdateRows(update, host_rows_, outcome_.data());
  }
  for (size_t i = 0; i < n; ++i) {
    if (host_rows_[i] == nullptr) {
      outcome_[i] = device_outcome_[i];
    } else if (outcome_[i] & storage::kOutcomeApplied) {
      Touch(chunk, i, step);
    }
  }
  return absl::OkStatus();
}

void ShardTable::TellWatchers(std::span<const Position> positions,
                              std::span<const storage::RowRef> refs) {
  for (TableSnapshot* snapshot : snapshots_) {
    for (size_t i = 0; i < positions.size(); ++i) {
      if (refs[i].created) {
        snapshot->Born(positions[i]);
      } else if (refs[i].row != nullptr) {
        snapshot->Save(positions[i], refs[i].row);
      }
    }
  }
  first_changes_.clear();
  if (!changes_.active()) return;
  for (size_t i = 0; i < positions.size(); ++i) {
    if (refs[i].row == nullptr) continue;
    if (refs[i].created) {
      first_changes_.push_back({i, true, {}});
      continue;
    }
    storage::RowMeta meta;
    std::memcpy(&meta, refs[i].row + layout_.meta_offset(), sizeof meta);
    if (!changes_.IsFirst(storage::StepOf(meta.last_step))) continue;
    first_changes_.push_back({i, false,
                              storage::HashRow(spec_.id, spec_.KeyAtPosition(positions[i]),
                                               {refs[i].row, layout_.row_bytes()})});
  }
}

template <typename Changed>
void ShardTable::NoteChanges(std::span<const Position> positions, Changed changed) {
  for (const FirstChange& first : first_changes_) {
    if (!changed(first.row)) continue;
    if (first.born) {
      changes_.Born(positions[first.row]);
    } else {
      changes_.Changed(positions[first.row], first.before);
    }
  }
  first_changes_.clear();
}

absl::Status ShardTable::Erase(std::span<const Position> positions) {
  const size_t chunk = std::min(kChunkRows, rows_->max_batch());
  for (size_t at = 0; at < positions.size(); at += chunk) {
    const auto part = positions.subspan(at, std::min(chunk, positions.size() - at));
    if (absl::Status s = ErasePending(); !s.ok()) return s;
    if (absl::Status s = LetGo(part, nullptr); !s.ok()) return s;
  }
  return ErasePending();
}

absl::Status ShardTable::LetGo(std::span<const Position> positions, PreImages* weighed) {
  if (weighed != nullptr || !snapshots_.empty() || changes_.active()) {
    refs_.resize(positions.size());
    absl::Status s = rows_->Resolve(positions, storage::Access::kRead, refs_);
    if (!s.ok()) return s;
    TellWatchers(positions, refs_);
    NoteChanges(positions, [](size_t) { return true; });
    for (size_t i = 0; weighed != nullptr && i < positions.size(); ++i) {
      if (refs_[i].row == nullptr) continue;
      CopyFloats(refs_[i].row, size_t{layout_.dim} * 4, weighed->Extend(positions.subspan(i, 1)));
    }
    rows_->Release();
  }
  for (const Position p : positions) EraseLater(p);
  return absl::OkStatus();
}

// The row's metadata after an update. The score comes first: it decays from the step before.
inline void ShardTable::Touch(const Chunk& chunk, size_t i, UpdateStep step) {
  uint8_t* const row = refs_[i].row;
  if (layout_.scored) {
    const float* counts = chunk.values + i * stride_ + layout_.dim;
    const float score = removal_.ScoreAfter(row, step.number, counts[0], counts[1]);
    std::memcpy(row + layout_.score_offset(), &score, sizeof score);
  }
  storage::TouchMeta(row + layout_.meta_offset(), static_cast<uint32_t>(step.number));
}

absl::Status ShardTable::ErasePending() {
  if (erase_.empty()) return absl::OkStatus();
  absl::Status s = rows_->Erase(erase_);
  if (s.ok()) erase_.clear();
  return s;
}

absl::Status ShardTable::Put(std::span<const Position> positions, const uint8_t* rows) {
  const size_t chunk = std::min(kChunkRows, rows_->max_batch());
  for (size_t at = 0; at < positions.size(); at += chunk) {
    const auto part = positions.subspan(at, std::min(chunk, positions.size() - at));
    refs_.resize(part.size());
    if (absl::Status s = rows_->Resolve(part, storage::Access::kUpdate, refs_); !s.ok()) return s;
    for (size_t i = 0; i < part.size(); ++i, rows += layout_.row_bytes()) {
      std::memcpy(refs_[i].row, rows, layout_.row_bytes());
      storage::RowMeta meta;
      std::memcpy(&meta, rows + layout_.meta_offset(), sizeof meta);
      newest_put_ = std::max(newest_put_, storage::StepOf(meta.last_step));
    }
    rows_->Release();
  }
  return absl::OkStatus();
}

}  // namespace strata::server
