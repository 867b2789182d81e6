#include "tools/bench/ssd/load.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>
#include <utility>

#include "proto/core/position.h"
#include "storage/tiered/table.h"

namespace strata::bench {
namespace {

constexpr double kZipf = 1.05;

void FillRow(uint64_t rank, uint8_t* row) {
  for (size_t i = 0; i < kSsdRowBytes; i += 8) {
    const uint64_t v = Mix64(rank + i);
    std::memcpy(row + i, &v, 8);
  }
}

}  // namespace

SsdBatches::SsdBatches(uint64_t rows, uint64_t seed)
    : rows_(rows), most_(std::pow(static_cast<double>(rows) + 1, 1 - kZipf)), random_(seed) {}

template <typename Draw>
std::span<const Position> SsdBatches::Take(const Draw& draw) {
  seen_.clear();
  batch_.clear();
  while (batch_.size() < kSsdBatch) {
    const uint64_t rank = draw();
    if (seen_.insert(rank).second) batch_.push_back(Position(Mix64(rank)));
  }
  std::sort(batch_.begin(), batch_.end());
  return batch_;
}

std::span<const Position> SsdBatches::Uniform() {
  return Take([this] { return random_() % rows_; });
}

std::span<const Position> SsdBatches::Zipf() {
  return Take([this] {
    const double u = std::uniform_real_distribution<double>(0, 1)(random_);
    const auto rank = static_cast<uint64_t>(std::pow(u * (most_ - 1) + 1, 1 / (1 - kZipf))) - 1;
    return std::min(rank, rows_ - 1);
  });
}

absl::Status LoadSsdRows(storage::RowTier& tier, uint64_t rows) {
  constexpr uint64_t kPart = 200'000;
  std::vector<uint8_t> memory(kPart * kSsdRowBytes);
  for (uint64_t begin = 0; begin < rows; begin += kPart) {
    std::vector<std::pair<Position, uint64_t>> part;
    for (uint64_t r = begin; r < std::min(rows, begin + kPart); ++r) {
      part.emplace_back(Position(Mix64(r)), r);
    }
    std::sort(part.begin(), part.end());
    std::vector<Position> positions;
    std::vector<const uint8_t*> pointers;
    for (size_t i = 0; i < part.size(); ++i) {
      FillRow(part[i].second, &memory[i * kSsdRowBytes]);
      positions.push_back(part[i].first);
      pointers.push_back(&memory[i * kSsdRowBytes]);
    }
    absl::Status s = tier.Write(kSsdTable, positions, pointers, kSsdRowBytes);
    if (!s.ok()) return s;
  }
  return tier.Sync();
}

absl::StatusOr<std::unique_ptr<SsdShards>> SsdShards::Make(storage::RowTier* tier,
                                                           uint64_t dram_bytes) {
  auto out = std::make_unique<SsdShards>();
  std::vector<absl::Status> made(kShards);
  std::vector<std::thread> threads;  // each counts the rows of its shard
  for (uint64_t i = 0; i < kShards; ++i) {
    out->shards_.push_back(std::make_unique<Shard>());
    threads.emplace_back([&, i, shard = out->shards_.back().get()] {
      constexpr uint64_t kRange = ~uint64_t{0} / kShards + 1;
      const MutexLock lock(&shard->mu);
      shard->last = Position(i * kRange + (kRange - 1));
      auto table = storage::MakeTieredTable({.table = kSsdTable,
                                             .row_bytes = kSsdRowBytes,
                                             .first = Position(i * kRange),
                                             .last = shard->last,
                                             .dram_limit_bytes = dram_bytes / kShards,
                                             .below = tier,
                                             .below_content = storage::BelowContent::kAdopt});
      made[i] = table.status();
      if (table.ok()) shard->table = *std::move(table);
      shard->refs.resize(kSsdBatch);
    });
  }
  for (std::thread& t : threads) t.join();
  for (const absl::Status& s : made) {
    if (!s.ok()) return s;
  }
  return out;
}

absl::Status SsdShards::Work(std::span<const Position> batch, storage::Access access, size_t first,
                             uint8_t* out) {
  std::vector<size_t> ends;
  for (const auto& shard : shards_) {
    ends.push_back(static_cast<size_t>(std::upper_bound(batch.begin(), batch.end(), shard->last) -
                                       batch.begin()));
  }
  for (size_t k = 0; k < shards_.size(); ++k) {
    const size_t s = (first + k) % shards_.size();
    const size_t begin = s == 0 ? 0 : ends[s - 1];
    const std::span<const Position> part = batch.subspan(begin, ends[s] - begin);
    Shard& shard = *shards_[s];
    const MutexLock lock(&shard.mu);
    absl::Status status = shard.table->Resolve(part, access, shard.refs);
    if (!status.ok()) return status;
    for (size_t i = 0; i < part.size(); ++i) {
      uint8_t* const row = shard.refs[i].row;
      if (row == nullptr || shard.refs[i].created) return absl::InternalError("rows are missing");
      if (access == storage::Access::kRead) {
        std::memcpy(out + (begin + i) * kSsdRowBytes, row, kSsdRowBytes);
      } else {
        for (size_t b = 0; b < kSsdRowBytes; b += 4) ++row[b];
      }
    }
    shard.table->Release();
  }
  return absl::OkStatus();
}

storage::TableCounters SsdShards::counters() const {
  storage::TableCounters sum;
  for (const auto& shard : shards_) {
    const MutexLock lock(&shard->mu);
    const storage::TableCounters c = shard->table->counters();
    sum.hits += c.hits;
    sum.ssd_reads += c.ssd_reads;
    sum.dram_rows += c.dram_rows;
    sum.dram_bytes += c.dram_bytes;
    sum.written_back += c.written_back;
  }
  return sum;
}

}  // namespace strata::bench
