#include "tools/bench/table/bench.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/optimizer.h"
#include "proto/core/ids.h"
#include "proto/core/position.h"
#include "proto/core/table_spec.h"
#include "server/table/shard_table.h"
#include "server/table/sums.h"
#include "storage/dram/table.h"
#include "storage/row/layout.h"
#include "storage/row/table.h"
#include "tools/bench/table/abseil_table.h"
#include "tools/bench/table/flat_table.h"
#include "tools/bench/table/growth.h"
#include "tools/bench/table/peer.h"

namespace strata::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kRows = 10'000'000;
constexpr size_t kChunk = server::ShardTable::kChunkRows;
constexpr uint64_t kHalf = uint64_t{1} << 63;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Position RowPosition(uint64_t i) { return Position(Mix64(i + 1)); }

TableSpec SpecOf(TableWork widest) {
  TableSpec spec;
  spec.name = "table";
  spec.kind = TableKind::kHashed;
  SegmentSpec segment;
  segment.dim = kTableDim;
  segment.optimizer.type =
      widest == TableWork::kAdagrad ? OptimizerType::kAdagrad : OptimizerType::kSgd;
  spec.segments.push_back(segment);
  return spec;
}

// A shard with the rows of [first, last], and the batches of the thread that has it.
class Shard {
 public:
  static absl::StatusOr<std::unique_ptr<Shard>> Make(TableWork widest, uint64_t first,
                                                     uint64_t last) {
    const TableSpec spec = SpecOf(widest);
    storage::DramTableOptions options;
    options.row_bytes = storage::RowLayout::For(spec).row_bytes();
    options.first = Position(first);
    options.last = Position(last);
    auto shard = std::unique_ptr<Shard>(new Shard(spec, storage::MakeDramTable(options)));
    if (absl::Status s = shard->Fill(first, last); !s.ok()) return s;
    return shard;
  }

  // One batch through the bare table.
  absl::Status OnTable(TableWork work) {
    const std::vector<Position>& batch = sets_[next_++ % kTableSets];
    for (size_t at = 0; at < batch.size(); at += kChunk) {
      const size_t n = std::min(kChunk, batch.size() - at);
      const std::span<storage::RowRef> refs(refs_.data(), n);
      const auto access =
          work == TableWork::kGather ? storage::Access::kRead : storage::Access::kUpdate;
      absl::Status s = table_.rows().Resolve(std::span(batch).subspan(at, n), access, refs);
      if (!s.ok()) return s;
      float* values = values_.data() + at * kTableDim;
      if (work == TableWork::kGather) {
        for (size_t i = 0; i < n; ++i) {
          std::memcpy(values + i * kTableDim, refs[i].row, kTableDim * sizeof(float));
        }
      } else {
        for (size_t i = 0; i < n; ++i) {
          weights_[i] = reinterpret_cast<float*>(refs[i].row);
          states_[i] = weights_[i] + kTableDim;
        }
        ops::ApplyRows(layout_.segments[0].optimizer, scalars_.At(1, 1), kTableDim, n,
                       weights_.data(), states_.data(), values, kTableDim, nullptr);
      }
      table_.rows().Release();
    }
    return absl::OkStatus();
  }

  // One batch through what a server has around it.
  absl::Status OnShard(TableWork work) {
    const std::vector<Position>& batch = sets_[next_++ % kTableSets];
    if (work == TableWork::kGather) return table_.Read(batch, values_.data());
    server::TableSums sums;
    sums.positions = batch;
    sums.values = values_.data();
    size_t done = 0;
    return table_.Apply(sums, {.number = 1, .examples = 1}, false, done);
  }

 private:
  Shard(const TableSpec& spec, std::unique_ptr<storage::RowTable> rows)
      : layout_(storage::RowLayout::For(spec)),
        table_(spec, 1, std::move(rows)),
        scalars_(layout_.segments[0].optimizer),
        refs_(kChunk),
        weights_(kChunk),
        states_(kChunk),
        values_(kTableBatch * kTableDim, .001f) {}

  absl::Status Fill(uint64_t first, uint64_t last) {
    std::vector<Position> here;
    for (uint64_t i = 0; i < kRows; ++i) {
      const Position p = RowPosition(i);
      if (first <= p.value && p.value <= last) here.push_back(p);
    }
    const size_t row_bytes = layout_.row_bytes();
    std::vector<uint8_t> rows(kTableBatch * row_bytes);
    for (size_t at = 0; at < here.size(); at += kTableBatch) {
      const auto part = here.begin() + static_cast<ptrdiff_t>(at);
      const size_t n = std::min(kTableBatch, here.size() - at);
      std::vector<Position> batch(part, part + static_cast<ptrdiff_t>(n));
      std::sort(batch.begin(), batch.end());
      if (absl::Status s = table_.Put(batch, rows.data()); !s.ok()) return s;
    }
    uint64_t x = 88172645463325252ull + first;
    for (std::vector<Position>& set : sets_) {
      while (set.size() < kTableBatch) {
        while (set.size() < kTableBatch) {
          x ^= x << 13, x ^= x >> 7, x ^= x << 17;
          set.push_back(here[x % here.size()]);
        }
        std::sort(set.begin(), set.end());
        set.erase(std::unique(set.begin(), set.end()), set.end());
      }
    }
    return absl::OkStatus();
  }

  const storage::RowLayout layout_;
  server::ShardTable table_;
  ops::ScalarSource scalars_;
  std::array<std::vector<Position>, kTableSets> sets_;
  size_t next_ = 0;
  std::vector<storage::RowRef> refs_;
  std::vector<float*> weights_, states_;
  std::vector<float> values_;
};

using Shards = std::vector<std::unique_ptr<Shard>>;

// Million keys per second of one thread per shard.
template <typename Batch>
absl::StatusOr<double> RateOf(const Shards& shards, double seconds, Batch batch) {
  std::vector<double> rates(shards.size());
  std::vector<absl::Status> statuses(shards.size());
  std::vector<std::thread> team;
  for (size_t t = 0; t < shards.size(); ++t) {
    team.emplace_back([&, t] {
      uint64_t batches = 0;
      const auto start = Clock::now();
      while (statuses[t].ok() && Since(start) < seconds) {
        statuses[t] = batch(*shards[t]);
        ++batches;
      }
      rates[t] = static_cast<double>(batches * kTableBatch) / Since(start) / 1e6;
    });
  }
  for (std::thread& thread : team) thread.join();
  double sum = 0;
  for (size_t t = 0; t < shards.size(); ++t) {
    if (!statuses[t].ok()) return statuses[t];
    sum += rates[t];
  }
  return sum;
}

struct Case {
  TableWork work;
  const char* name;
};

absl::Status RunCase(const Case& c, const Shards& shards, const FlatTable& flat,
                     const BenchOptions& o, std::optional<double> peer, const Report& report) {
  const double window = o.seconds / 12;
  std::vector<double> bare, server, limits;
  for (int round = 0; round < o.rounds; ++round) {
    const auto a = RateOf(shards, window, [&](Shard& s) { return s.OnTable(c.work); });
    if (!a.ok()) return a.status();
    bare.push_back(*a);
    limits.push_back(flat.Rate(c.work, shards.size(), window));
    const auto b = RateOf(shards, window, [&](Shard& s) { return s.OnShard(c.work); });
    if (!b.ok()) return b.status();
    server.push_back(*b);
  }
  for (const bool whole : {false, true}) {
    Figure f;
    f.bench = "table";
    f.name = absl::StrCat(whole ? "shard: " : "table: ", c.name, ", ", shards.size(),
                          shards.size() == 1 ? " thread" : " threads");
    f.value = Median(whole ? server : bare);
    f.unit = "Mkeys/s";
    f.limit = Median(limits);
    f.limit_name = c.work == TableWork::kAdagrad ? "flat map, rows of 128 B" : "flat map";
    if (!whole && peer.has_value()) {
      f.peer = peer;
      f.peer_name = "limits/hash.cc";
    }
    report(f);
  }
  return absl::OkStatus();
}

absl::Status RunSpeed(TableWork widest, const std::vector<Case>& cases, const TablePeer& peer,
                      const BenchOptions& o, const Report& report) {
  const FlatTable flat(kRows, widest);
  for (const size_t threads : {1, 2}) {
    Shards shards;
    for (size_t t = 0; t < threads; ++t) {
      const uint64_t first = t == 0 ? 0 : kHalf;
      const uint64_t last = t + 1 == threads ? ~uint64_t{0} : kHalf - 1;
      auto shard = Shard::Make(widest, first, last);
      if (!shard.ok()) return shard.status();
      shards.push_back(*std::move(shard));
    }
    for (const Case& c : cases) {
      absl::Status s = RunCase(c, shards, flat, o, peer.Rate(c.work, threads), report);
      if (!s.ok()) return s;
    }
  }
  return absl::OkStatus();
}

// Abseil's map, for the record of why the table is our own.
void RunAbseil(const BenchOptions& o, const Report& report) {
  const auto say = [&](const std::string& name, double value, const std::string& unit) {
    Figure f;
    f.bench = "table";
    f.name = absl::StrCat("absl::flat_hash_map: ", name);
    f.value = value;
    f.unit = unit;
    report(f);
  };
  for (const size_t threads : {1, 2}) {
    const AbseilTable table(kRows, threads);
    std::vector<double> gather, sgd;
    for (int round = 0; round < o.rounds; ++round) {
      gather.push_back(table.Rate(TableWork::kGather, o.seconds / 12));
      sgd.push_back(table.Rate(TableWork::kSgd, o.seconds / 12));
    }
    const std::string with = absl::StrCat(", ", threads, threads == 1 ? " thread" : " threads");
    say("lookup + gather" + with, Median(gather), "Mkeys/s");
    say("lookup + SGD update" + with, Median(sgd), "Mkeys/s");
  }
  const AbseilTable::Growth g = AbseilTable::Grow(1'000'000, 20'000'000, kChunk);
  say("1 to 20 million rows: longest call by the clock", g.longest_ms, "ms");
  say("1 to 20 million rows: time per new row", g.nanoseconds, "ns");
  say("1 to 20 million rows: most beyond key and weights, resident", g.most_bytes, "bytes/row");
}

absl::Status RunTable(const BenchOptions& o, const Report& report) {
  TablePeer peer;
  if (!o.baselines.empty()) peer = RunTablePeer(o.baselines, o.directory);
  absl::Status s =
      RunSpeed(TableWork::kSgd,
               {{TableWork::kGather, "lookup + gather"}, {TableWork::kSgd, "lookup + SGD update"}},
               peer, o, report);
  if (!s.ok()) return s;
  s = RunSpeed(TableWork::kAdagrad, {{TableWork::kAdagrad, "lookup + Adagrad update"}}, peer, o,
               report);
  if (!s.ok()) return s;
  RunAbseil(o, report);
  return MeasureGrowth(o, report);
}

}  // namespace

std::vector<NamedBenchmark> TableBenchmarks() {
  return {{"table", "the DRAM table against a flat map; its growth", RunTable},
          {"table_growth", "its growth alone, in a process of its own", MeasureGrowth}};
}

}  // namespace strata::bench
