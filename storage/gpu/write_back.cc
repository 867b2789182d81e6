#include "storage/gpu/write_back.h"

#include <algorithm>

namespace strata::storage::gpu {

GpuWriteBack::GpuWriteBack(uint32_t places, GpuBackend* backend, GpuBelow* below)
    : backend_(backend), below_(below), entries_(places) {
  for (uint32_t place = places; place-- > 0;) free_.push_back(place);
}

absl::Status GpuWriteBack::Room(size_t n, std::span<const uint32_t>& places) {
  if (free_.size() < n) {
    if (absl::Status s = Write(waiting()).status(); !s.ok()) return s;
  }
  room_ = n;
  places = std::span<const uint32_t>(free_).last(n);
  return absl::OkStatus();
}

void GpuWriteBack::Add(Position position, uint32_t place, uint8_t flags) {
  entries_[place] = {position.value, flags, true};
  place_of_.emplace(position.value, place);
}

void GpuWriteBack::Settle() {
  const auto begin = free_.end() - static_cast<ptrdiff_t>(room_);
  free_.erase(
      std::remove_if(begin, free_.end(), [this](uint32_t place) { return entries_[place].taken; }),
      free_.end());
  room_ = 0;
}

uint32_t GpuWriteBack::Find(Position position) const {
  if (place_of_.empty()) return kNoGpuSlot;
  const auto it = place_of_.find(position.value);
  return it == place_of_.end() ? kNoGpuSlot : it->second;
}

void GpuWriteBack::Remove(uint32_t place) {
  place_of_.erase(entries_[place].position);
  entries_[place].taken = false;
  free_.push_back(place);
}

std::vector<GpuRow> GpuWriteBack::Waiting(Position first, Position last) const {
  std::vector<GpuRow> rows;
  rows.reserve(place_of_.size());
  for (uint32_t place = 0; place < entries_.size() && !place_of_.empty(); ++place) {
    const Entry& e = entries_[place];
    if (!e.taken || e.position < first.value || last.value < e.position) continue;
    rows.push_back({e.position, place, e.flags});
  }
  std::sort(rows.begin(), rows.end(),
            [](const GpuRow& a, const GpuRow& b) { return a.position < b.position; });
  return rows;
}

absl::StatusOr<size_t> GpuWriteBack::Write(size_t most) {
  std::vector<GpuRow> waiting = Waiting(Position(0), Position(~0ull));
  if (waiting.size() > most) waiting.resize(most);
  const size_t part = backend_->max_batch();
  for (size_t at = 0; at < waiting.size(); at += part) {
    const auto rows = std::span<const GpuRow>(waiting).subspan(at);
    if (absl::Status s = WritePart(rows.first(std::min(part, rows.size()))); !s.ok()) return s;
  }
  return waiting.size();
}

absl::Status GpuWriteBack::WritePart(std::span<const GpuRow> waiting) {
  std::vector<uint32_t> places(waiting.size());
  for (size_t i = 0; i < waiting.size(); ++i) places[i] = waiting[i].slot;
  std::vector<const uint8_t*> bytes(waiting.size());
  if (absl::Status s = backend_->ReadStaged(places, bytes); !s.ok()) return s;
  std::vector<GpuBelow::Row> rows(waiting.size());
  for (size_t i = 0; i < waiting.size(); ++i) {
    rows[i] = {.position = Position(waiting[i].position),
               .bytes = bytes[i],
               .known = (waiting[i].flags & kGpuBelow) != 0,
               .tag = waiting[i].slot};
  }
  size_t done = 0;
  absl::Status s = below_->Store(rows, done);
  for (size_t i = 0; i < done; ++i) Remove(rows[i].tag);
  return s;
}

}  // namespace strata::storage::gpu
