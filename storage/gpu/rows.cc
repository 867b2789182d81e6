#include "storage/gpu/rows.h"

#include <algorithm>
#include <utility>

#include "storage/row/table_batch.h"

namespace strata::storage::gpu {
namespace {

GpuUse UseOf(Access access) { return access == Access::kRead ? GpuUse::kRead : GpuUse::kUpdate; }

}  // namespace

GpuTable::GpuTable(Position first, Position last, const GpuShape& shape,
                   std::unique_ptr<RowTable> below, std::unique_ptr<GpuBackend> backend)
    : first_(first),
      last_(last),
      shape_(shape),
      backend_(std::move(backend)),
      below_(std::move(below), shape.row_bytes),
      write_back_(shape.places, backend_.get(), &below_),
      clock_(shape.eviction, shape.slots()),
      max_batch_(std::min({shape.slots() / 2, below_.table().max_batch(), backend_->max_batch()})),
      most_misses_(std::min<size_t>(shape.places, max_batch_)) {}

// Errors of the device are final: what it holds is not known any more.
absl::Status GpuTable::Device(absl::Status status) {
  if (!status.ok()) broken_ = status;
  return status;
}

absl::Status GpuTable::Resolve(std::span<const Position> positions, Access access,
                               std::span<RowRef> refs, std::span<RowSlot> slots) {
  return Hold(positions, access, Leave::kOpen, refs, slots);
}

// 1. hold what is in HBM  2. bring up what waits, is below, or is to be born (BringUp)  3. have the
// rows that found no room served below (ServeCrowded), last, since only then nothing can fail any
// more but the device  4. answer.
absl::Status GpuTable::Hold(std::span<const Position> positions, Access access, Leave leave,
                            std::span<RowRef> refs, std::span<RowSlot> slots) {
  if (!broken_.ok()) return broken_;
  if (absl::Status s = CheckBatch(positions, first_, last_, max_batch_); !s.ok()) return s;
  slots_.assign(positions.size(), kNoGpuSlot);
  std::copy(slots.begin(), slots.end(), slots_.begin());
  const auto scored = backend_->Find(positions, UseOf(access), clock_.now(), slots_);
  if (!scored.ok()) return Device(scored.status());
  hits_ += *scored;
  std::fill(refs.begin(), refs.begin() + static_cast<ptrdiff_t>(positions.size()), RowRef{});
  crowded_.clear();
  unset_.clear();
  arrived_ = 0;
  absl::Status status = BringUp(positions, access, refs);
  if (status.ok()) status = ServeCrowded(positions, access, refs);
  if (status.ok()) status = OpenRows(access, leave, refs);
  if (status.ok()) status = Pass(*scored + arrived_);
  if (!status.ok()) {
    Undo();
    Release();
    return status;
  }
  if (access == Access::kUpdate) below_.AddLacking(unset_.size());
  std::copy_n(slots_.begin(), slots.size(), slots.begin());
  return absl::OkStatus();
}

// In parts for which there are staging places, should every row that comes push out a dirty one.
// What is only read needs none: where no row can be written below, it is served where it is.
absl::Status GpuTable::BringUp(std::span<const Position> positions, Access access,
                               std::span<RowRef> refs) {
  std::vector<uint32_t> missed;
  for (size_t i = 0; i < positions.size(); ++i) {
    if (slots_[i] == kNoGpuSlot) missed.push_back(static_cast<uint32_t>(i));
  }
  for (size_t at = 0; at < missed.size(); at += most_misses_) {
    const auto part =
        std::span<const uint32_t>(missed).subspan(at, std::min(most_misses_, missed.size() - at));
    std::span<const uint32_t> places;
    const absl::Status room = write_back_.Room(part.size(), places);
    if (!room.ok() && access != Access::kRead) return room;
    absl::Status s = FindMisses(positions, access, part);
    if (s.ok() && room.ok()) s = InsertMisses(positions, access, places, refs);
    if (s.ok() && !room.ok()) {
      for (const Miss& miss : misses_) crowded_.push_back(miss.index);
    }
    below_.Release();
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

// misses_: those of `indices` that are to have a slot. Leaves the table below open.
absl::Status GpuTable::FindMisses(std::span<const Position> positions, Access access,
                                  std::span<const uint32_t> indices) {
  misses_.clear();
  asked_.clear();
  for (const uint32_t i : indices) {
    misses_.push_back({.index = i, .place = write_back_.Find(positions[i])});
    if (misses_.back().place == kNoGpuSlot) asked_.push_back(positions[i]);
  }
  if (access == Access::kReplace || asked_.empty()) return absl::OkStatus();
  below_refs_.resize(asked_.size());
  if (absl::Status s = below_.Read(asked_, below_refs_); !s.ok()) return s;
  size_t kept = 0;
  size_t asked = 0;
  for (Miss& miss : misses_) {
    if (miss.place == kNoGpuSlot) miss.bytes = below_refs_[asked++].row;
    const bool nowhere = miss.place == kNoGpuSlot && miss.bytes == nullptr;
    if (!nowhere || access == Access::kUpdate) misses_[kept++] = miss;
  }
  misses_.resize(kept);
  return absl::OkStatus();
}

absl::Status GpuTable::InsertMisses(std::span<const Position> positions, Access access,
                                    std::span<const uint32_t> places, std::span<RowRef> refs) {
  const uint8_t use = kGpuHeld | (access == Access::kRead ? kGpuRead : kGpuDirty);
  arrivals_.resize(misses_.size());
  placed_.resize(misses_.size());
  for (size_t i = 0; i < misses_.size(); ++i) {
    uint8_t flags = use;
    if (misses_[i].place != kNoGpuSlot) {
      flags |= write_back_.FlagsAt(misses_[i].place) & (kGpuDirty | kGpuBelow);
    } else if (misses_[i].bytes != nullptr || access == Access::kReplace) {
      flags |= kGpuBelow;
    }
    arrivals_[i] = {positions[misses_[i].index].value, places[i], flags};
  }
  if (absl::Status s = backend_->Insert(arrivals_, clock_.now(), placed_); !s.ok()) {
    return Device(std::move(s));
  }
  for (size_t i = 0; i < misses_.size(); ++i) {
    const GpuPlaced& placed = placed_[i];
    if (placed.slot == kNoGpuSlot) {
      crowded_.push_back(misses_[i].index);
      continue;
    }
    if (placed.left != 0) {
      ++evicted_;
      if (placed.left_flags & kGpuDirty) {
        write_back_.Add(Position(placed.left_position), places[i], placed.left_flags);
      }
    }
    rows_ += placed.left == 0;
    ++arrived_;
    slots_[misses_[i].index] = placed.slot;
    if (misses_[i].bytes == nullptr && misses_[i].place == kNoGpuSlot) {
      unset_.push_back(placed.slot);
      refs[misses_[i].index].created = access == Access::kUpdate;
    }
  }
  write_back_.Settle();
  return MoveUp();
}

// The bytes of rows that have got a slot.
absl::Status GpuTable::MoveUp() {
  std::vector<uint32_t> from_below, waited, places;
  std::vector<const uint8_t*> bytes;
  for (size_t i = 0; i < misses_.size(); ++i) {
    if (placed_[i].slot == kNoGpuSlot) continue;
    if (misses_[i].bytes != nullptr) {
      from_below.push_back(placed_[i].slot);
      bytes.push_back(misses_[i].bytes);
    } else if (misses_[i].place != kNoGpuSlot) {
      waited.push_back(placed_[i].slot);
      places.push_back(misses_[i].place);
    }
  }
  if (absl::Status s = backend_->Put(from_below, bytes); !s.ok()) return Device(std::move(s));
  if (absl::Status s = backend_->PutStaged(waited, places); !s.ok()) return Device(std::move(s));
  for (const uint32_t place : places) write_back_.Remove(place);
  return absl::OkStatus();
}

// Stays open until Release. What waits is written first, and then the version below is the newest;
// or, if it is only read, copied.
absl::Status GpuTable::ServeCrowded(std::span<const Position> positions, Access access,
                                    std::span<RowRef> refs) {
  if (crowded_.empty()) return absl::OkStatus();
  std::vector<uint32_t> index, copied, places;
  bool write = false;
  asked_.clear();
  for (const uint32_t i : crowded_) {
    const uint32_t place = write_back_.Find(positions[i]);
    if (place != kNoGpuSlot && access == Access::kRead) {
      copied.push_back(i);
      places.push_back(place);
      continue;
    }
    index.push_back(i);
    asked_.push_back(positions[i]);
    write |= place != kNoGpuSlot;
  }
  if (write) {
    if (absl::Status s = write_back_.Write(write_back_.waiting()).status(); !s.ok()) return s;
  }
  below_refs_.resize(asked_.size());
  if (absl::Status s = below_.Serve(asked_, access, below_refs_); !s.ok()) return s;
  for (size_t k = 0; k < index.size(); ++k) refs[index[k]] = below_refs_[k];
  std::vector<const uint8_t*> rows(places.size());
  if (absl::Status s = backend_->ReadStaged(places, rows); !s.ok()) return Device(std::move(s));
  copies_.resize(places.size() * shape_.row_bytes);
  for (size_t k = 0; k < copied.size(); ++k) {
    refs[copied[k]].row = &copies_[k * shape_.row_bytes];
    std::copy_n(rows[k], shape_.row_bytes, refs[copied[k]].row);
  }
  for (size_t k = 0; k < crowded_.size(); ++k) {
    slots_[crowded_[k]] = static_cast<uint32_t>(shape_.slots() + k);
  }
  return absl::OkStatus();
}

absl::Status GpuTable::OpenRows(Access access, Leave leave, std::span<RowRef> refs) {
  std::vector<uint32_t> index;
  in_place_.assign(slots_.size(), kNoGpuSlot);
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i] >= shape_.slots()) continue;
    held_.push_back(slots_[i]);
    index.push_back(static_cast<uint32_t>(i));
    in_place_[i] = slots_[i];
    refs[i].on_device = leave == Leave::kThere;
  }
  if (leave == Leave::kThere) return absl::OkStatus();
  std::vector<uint8_t*> rows(held_.size());
  absl::Status s = backend_->Open(held_, UseOf(access), rows);
  for (size_t k = 0; k < index.size() && s.ok(); ++k) refs[index[k]].row = rows[k];
  return Device(std::move(s));
}

absl::Status GpuTable::Pass(size_t scored) {
  const GpuAging aging = clock_.Pass(scored);
  return aging ? Device(backend_->Age(aging)) : absl::OkStatus();
}

// Of a call that failed: rows that have no bytes yet go (replaced ones are below as they were);
// what it holds is held until Release.
void GpuTable::Undo() {
  (void)Device(backend_->Erase(unset_));
  rows_ -= unset_.size();
  held_.clear();
  for (const uint32_t slot : slots_) {
    if (slot < shape_.slots()) held_.push_back(slot);
  }
}

void GpuTable::Release() {
  if (!held_.empty()) (void)Device(backend_->Close(held_));
  held_.clear();
  below_.Release();
}

// In parts that the backend takes: what was pinned batch by batch is named at once.
size_t GpuTable::Pin(std::span<const RowSlot> slots) {
  size_t through = 0;
  while (through < slots.size()) {
    const size_t n = std::min(backend_->max_batch(), slots.size() - through);
    const auto pinned = backend_->Pin(slots.subspan(through, n), shape_.slots() / 2 - pinned_);
    if (!pinned.ok()) {
      (void)Device(pinned.status());
      break;
    }
    pinned_ += pinned->rows;
    through += pinned->through;
    if (pinned->through < n) break;
  }
  return through;
}

void GpuTable::Unpin(std::span<const Position> positions, std::span<const RowSlot> slots) {
  for (size_t at = 0; at < positions.size(); at += backend_->max_batch()) {
    const size_t n = std::min(backend_->max_batch(), positions.size() - at);
    const auto ended = backend_->Unpin(positions.subspan(at, n), slots.subspan(at, n));
    if (!Device(ended.status()).ok()) return;
    pinned_ -= *ended;
  }
}

// The table below first: if that fails, every row is still there.
absl::Status GpuTable::Erase(std::span<const Position> positions) {
  if (!broken_.ok()) return broken_;
  if (absl::Status s = CheckBatch(positions, first_, last_, max_batch_); !s.ok()) return s;
  slots_.assign(positions.size(), kNoGpuSlot);
  const auto found = backend_->Find(positions, GpuUse::kLook, clock_.now(), slots_);
  if (!found.ok()) return Device(found.status());
  std::vector<uint8_t> flags(positions.size());
  const auto pinned = backend_->Flags(slots_, flags);
  if (!pinned.ok()) return Device(pinned.status());
  std::vector<uint32_t> here, waiting;
  uint64_t lacking = 0;
  asked_.clear();
  for (size_t i = 0; i < positions.size(); ++i) {
    const uint32_t place = write_back_.Find(positions[i]);
    if (slots_[i] != kNoGpuSlot) {
      here.push_back(slots_[i]);
    } else if (place != kNoGpuSlot) {
      waiting.push_back(place);
      flags[i] = write_back_.FlagsAt(place);
    }
    const bool above = slots_[i] != kNoGpuSlot || place != kNoGpuSlot;
    if (above && (flags[i] & kGpuBelow) == 0) {
      ++lacking;
    } else {
      asked_.push_back(positions[i]);
    }
  }
  if (absl::Status s = below_.table().Erase(asked_); !s.ok()) return s;
  if (absl::Status s = backend_->Erase(here); !s.ok()) return Device(std::move(s));
  for (const uint32_t place : waiting) write_back_.Remove(place);
  below_.RemoveLacking(lacking);
  rows_ -= here.size();
  pinned_ -= *pinned;
  return absl::OkStatus();
}

TableCounters GpuTable::counters() const {
  TableCounters counters = below_.counters();
  counters.pinned = pinned_;
  counters.hbm_rows = rows_;
  counters.hbm_bytes = shape_.bytes();
  counters.hbm_hits = hits_;
  counters.hbm_evicted = evicted_;
  counters.hbm_gathered = gathered_;
  counters.hbm_updated = updated_;
  counters.hbm_extra_bytes = extra_bytes_;
  return counters;
}

}  // namespace strata::storage::gpu
