// A table's rows read into a device's memory, and updated by sums that lie there.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "server/table/shard_table.h"
#include "storage/row/births.h"
#include "storage/row/update.h"

namespace strata::server {
namespace {

// A chunk costs some calls of the device that wait for it, so it is large; and what the host holds
// of it is bounded.
constexpr size_t kMostRows = size_t{1} << 16;
constexpr size_t kMostBytes = size_t{32} << 20;  // of rows

}  // namespace

std::string ShardTable::values_device() const {
  const bool may = updates_on_device_ && !admission_.active() && spec_.kind == TableKind::kHashed;
  return may ? device_->device() : std::string();
}

size_t ShardTable::ThereRows() const {
  const size_t bounded = std::max<size_t>(kMostBytes / layout_.row_bytes(), kChunkRows);
  return std::min({kMostRows, bounded, rows_->max_batch()});
}

// By chunks: 1 find the rows, 2 those on the device are gathered there, 3 those on the host go
// there, 4 absent ones get their initial weights there.
absl::Status ShardTable::ReadThere(std::span<const Position> positions, const ReadAs& as) {
  const uint32_t dim = layout_.dim;
  const size_t chunk = ThereRows();
  float* there = as.there;
  for (size_t at = 0; at < positions.size(); at += chunk) {
    const auto part = positions.subspan(at, std::min(chunk, positions.size() - at));
    absl::Status s = Locate(part, storage::Access::kRead, Slots(as.kept, at, part.size()));
    if (!s.ok()) return s;
    if (as.kept != nullptr) PinMore(*as.kept, at, part.size());
    elsewhere_.clear();
    born_.clear();
    born_keys_.clear();
    for (uint32_t i = 0; i < part.size(); ++i) {
      if (refs_[i].on_device) continue;
      if (refs_[i].row != nullptr) {
        elsewhere_.push_back(i);
        continue;
      }
      born_.push_back(i);
      born_keys_.push_back(spec_.KeyAtPosition(part[i]));
    }
    s = device_->GatherThere(dim, there);
    if (s.ok()) {
      s = stage_.Upload(elsewhere_, dim, there, [&](size_t k, float* out) {
        std::memcpy(out, refs_[elsewhere_[k]].row, size_t{dim} * sizeof(float));
      });
    }
    if (s.ok() && !born_.empty()) {
      s = device_->InitializeThere({&spec_, &layout_, seed_, born_keys_}, born_, there);
    }
    rows_->Release();
    if (!s.ok()) return s;
    there += part.size() * dim;
  }
  return absl::OkStatus();
}

// Over what ReadThere wrote.
absl::Status ShardTable::ReadPreimagesThere(std::span<const Position> positions, float* there) {
  const uint32_t dim = layout_.dim;
  const size_t chunk = ThereRows();
  PreImages::Cursor cursor(preimages_);
  std::vector<const float*> before;
  for (size_t at = 0; at < positions.size(); at += chunk) {
    const auto part = positions.subspan(at, std::min(chunk, positions.size() - at));
    before.clear();
    elsewhere_.clear();
    for (uint32_t i = 0; i < part.size(); ++i) {
      const float* weights = cursor.Find(part[i]);
      if (weights == nullptr) continue;
      before.push_back(weights);
      elsewhere_.push_back(i);
    }
    absl::Status s = stage_.Upload(elsewhere_, dim, there + at * dim, [&](size_t k, float* out) {
      std::memcpy(out, before[k], size_t{dim} * sizeof(float));
    });
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

// Of the rows on the host (host_rows_): their sums come here. outcome_ of the others is left.
absl::Status ShardTable::UpdateFromThere(const Chunk& chunk, storage::RowUpdate update) {
  elsewhere_.clear();
  std::vector<uint8_t*> rows;
  for (uint32_t i = 0; i < chunk.positions.size(); ++i) {
    if (host_rows_[i] == nullptr) continue;
    elsewhere_.push_back(i);
    rows.push_back(host_rows_[i]);
  }
  std::vector<uint8_t> outcomes(rows.size());
  update.sums_there = nullptr;
  absl::Status s = stage_.Download(chunk.values_there, elsewhere_, static_cast<uint32_t>(stride_),
                                   [&](size_t first, size_t n, const float* sums) {
                                     update.sums = sums;
                                     storage::UpdateRows(update, std::span(rows).subspan(first, n),
                                                         outcomes.data() + first);
                                   });
  if (!s.ok()) return s;
  for (size_t k = 0; k < elsewhere_.size(); ++k) outcome_[elsewhere_[k]] = outcomes[k];
  return absl::OkStatus();
}

absl::StatusOr<TableSums> ShardTable::OnHost(const TableSums& sums) {
  if (sums.values_there == nullptr || sums.size() == 0) return sums;
  struct Copied {
    std::unique_ptr<float[]> values;
    std::shared_ptr<const void> source;  // of the positions
  };
  auto copied = std::make_shared<Copied>();
  copied->values.reset(new float[sums.size() * stride_]);  // all of it is written
  copied->source = sums.owner;
  absl::Status s = stage_.DownloadAll(sums.values_there, sums.size(),
                                      static_cast<uint32_t>(stride_), copied->values.get());
  if (!s.ok()) return s;
  TableSums here = sums;
  here.values_there = nullptr;
  here.values = copied->values.get();
  here.owner = std::move(copied);
  return here;
}

}  // namespace strata::server
