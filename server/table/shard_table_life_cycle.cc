// How a table's rows are admitted and removed; what is decided, life_cycle_*.h say.
#include <algorithm>
#include <cstring>

#include "server/table/shard_table.h"
#include "storage/delta/removed_stream.h"

namespace strata::server {

// 1 which keys have no row (Resolve), 2 which of those get one (AdmissionFilter), 3 what is left as
// a chunk of its own, copied only where some key is taken out. A chunk that is tried again, because
// a tier failed while its rows were updated, meets its decisions made.
absl::Status ShardTable::AdmitChunk(const TableSums& sums, size_t first, size_t n, UpdateStep step,
                                    Chunk& chunk) {
  chunk = {.positions = sums.positions.subspan(first, n), .slots = Slots(sums.kept, first, n)};
  if (sums.values_there != nullptr) {
    chunk.values_there = sums.values_there + first * stride_;
  } else {
    chunk.values = sums.values + first * stride_;
  }
  if (!admission_.active()) return absl::OkStatus();  // always so with values_there
  if (!admitted_.decided) {
    admitted_.slots.assign(n, storage::kNoRow);
    const std::span<storage::RowSlot> slots =
        chunk.slots.empty() ? std::span(admitted_.slots) : chunk.slots;
    absl::Status s = Locate(chunk.positions, storage::Access::kRead, slots);
    if (!s.ok()) return s;
    admitted_.index.clear();
    for (size_t i = 0; i < n; ++i) {
      if (refs_[i].row == nullptr && !refs_[i].on_device) {
        const Position p = chunk.positions[i];
        const bool admitted = admission_.Admit(p, spec_.KeyAtPosition(p), step.number);
        ++(admitted ? life_cycle_.admitted : life_cycle_.refused);
        if (!admitted) continue;
      }
      admitted_.index.push_back(i);
    }
    rows_->Release();
    for (size_t k = 0; k < admitted_.index.size(); ++k) {
      admitted_.slots[k] = slots[admitted_.index[k]];
    }
    admitted_.decided = true;
  }
  if (admitted_.index.size() == n) {
    if (chunk.slots.empty()) chunk.slots = admitted_.slots;
    return absl::OkStatus();
  }
  admitted_.positions.clear();
  admitted_.values.resize(admitted_.index.size() * stride_);
  float* out = admitted_.values.data();
  for (const size_t i : admitted_.index) {
    admitted_.positions.push_back(chunk.positions[i]);
    std::memcpy(out, chunk.values + i * stride_, stride_ * sizeof(float));
    out += stride_;
  }
  chunk = {.positions = admitted_.positions,
           .values = admitted_.values.data(),
           .slots = std::span(admitted_.slots).first(admitted_.index.size())};
  return absl::OkStatus();
}

absl::Status ShardTable::Sweep(PartitionRange range, const SweepOptions& options,
                               PartitionId& next) {
  if (!removal_.active()) return absl::OkStatus();
  for (;;) {
    if (absl::Status s = RemoveDoomed(options); !s.ok()) return s;
    const auto due = removal_.NextDue(range, next, options.step);
    if (!due) break;
    PartitionSweep sweep(&removal_, options.step);
    absl::Status s = rows_->Scan(partitioning_.First(*due), partitioning_.Last(*due),
                                 [&](Position position, std::span<const uint8_t> row) {
                                   sweep.Add(position, row.data());
                                   return absl::OkStatus();
                                 });
    if (!s.ok()) return s;
    doomed_ = sweep.Finish();
    doomed_done_ = 0;
    next = due->Next();
  }
  if (!removed_images_.positions().empty()) {
    if (absl::Status s = preimages_.BringToHost(); !s.ok()) return s;
  }
  preimages_.Merge(removed_images_);
  removed_images_.Clear();
  return absl::OkStatus();
}

// A chunk of rows that were let go is not read again after an error, only erased; and what may fail
// of telling `removed` comes before.
absl::Status ShardTable::RemoveDoomed(const SweepOptions& options) {
  static_assert(kChunkRows <= storage::RemovedWriter::kMostAdd);
  const size_t most = std::min(kChunkRows, rows_->max_batch());
  std::vector<Position> positions;
  for (;;) {
    if (absl::Status s = ErasePending(); !s.ok()) return s;
    const size_t n = std::min(most, doomed_.size() - doomed_done_);
    if (n == 0) return absl::OkStatus();
    positions.clear();
    for (size_t i = 0; i < n; ++i) positions.push_back(doomed_[doomed_done_ + i].position);
    storage::RemovedWriter* const removed = options.removed;
    if (removed != nullptr) {
      const uint64_t to = options.removed_to;
      if (absl::Status s = removed->MakeRoom(spec_.id, to - 1, to); !s.ok()) return s;
    }
    absl::Status s = LetGo(positions, options.keep_preimages ? &removed_images_ : nullptr);
    if (!s.ok()) return s;
    if (removed != nullptr) removed->Add(spec_.id, positions);
    for (size_t i = 0; i < n; ++i) {
      ++life_cycle_.removed[static_cast<size_t>(doomed_[doomed_done_ + i].rule)];
    }
    doomed_done_ += n;
  }
}

}  // namespace strata::server
