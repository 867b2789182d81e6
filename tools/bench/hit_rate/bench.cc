#include "tools/bench/hit_rate/bench.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/core/position.h"
#include "storage/dram/store.h"
#include "storage/eviction/kind.h"
#include "storage/tiered/table.h"
#include "tools/bench/hit_rate/memory_tier.h"
#include "tools/bench/hit_rate/reference_trace.h"

namespace strata::bench {
namespace {

using storage::Access;
using storage::EvictionKind;

constexpr uint32_t kKeys = 400'000;
constexpr uint64_t kReferences = 6'000'000;
constexpr uint32_t kBatch = 2048;
constexpr size_t kRowBytes = 16;

struct Policy {
  const char* name;
  EvictionKind kind;
};
constexpr Policy kPolicies[] = {
    {"lru", EvictionKind::kLru}, {"lfu", EvictionKind::kLfu}, {"lrfu", EvictionKind::kLrfu}};

// A tiered table driven as training does: each batch's distinct keys are read, then updated, in
// order of position.
class TableRun {
 public:
  static absl::StatusOr<double> HitRate(const Trace& trace, size_t rows, size_t from,
                                        EvictionKind kind) {
    TableRun run;
    storage::TieredOptions options;
    options.row_bytes = kRowBytes;
    options.below = run.tier_.get();
    options.eviction = kind;
    options.dram_limit_bytes =
        storage::RowStore::BytesFor(storage::TieredStoreOptions(options), rows) +
        storage::RowStore::kPageSlack;
    auto table = storage::MakeTieredTable(options);
    if (!table.ok()) return table.status();
    run.table_ = *std::move(table);
    std::vector<uint32_t> all(trace.keys);
    for (uint32_t k = 0; k < trace.keys; ++k) all[k] = k;
    if (absl::Status s = run.Each(all, Access::kUpdate); !s.ok()) return s;
    uint64_t before = 0;
    for (size_t b = 0; b < trace.batches.size(); ++b) {
      if (b == from) before = run.table_->counters().ssd_reads;
      if (absl::Status s = run.Each(trace.batches[b], Access::kRead); !s.ok()) return s;
      if (absl::Status s = run.Each(trace.batches[b], Access::kUpdate); !s.ok()) return s;
    }
    const auto references = static_cast<double>(trace.batches.size() - from) *
                            static_cast<double>(trace.batch_references);
    return 1 - static_cast<double>(run.table_->counters().ssd_reads - before) / references;
  }

 private:
  TableRun() : tier_(MakeMemoryTier()) {}

  absl::Status Each(const std::vector<uint32_t>& keys, Access access) {
    std::vector<Position> positions;
    for (const uint32_t key : keys) positions.push_back(Position(Mix64(key)));
    std::sort(positions.begin(), positions.end());
    const size_t chunk = std::min<size_t>(kBatch, table_->max_batch());
    std::vector<storage::RowRef> refs(chunk);
    for (size_t at = 0; at < positions.size(); at += chunk) {
      const auto part = std::span(positions).subspan(at, std::min(chunk, positions.size() - at));
      absl::Status s = table_->Resolve(part, access, std::span(refs).first(part.size()));
      if (!s.ok()) return s;
      for (size_t i = 0; i < part.size(); ++i) {
        if (refs[i].created) std::memset(refs[i].row, 0, kRowBytes);
      }
      table_->Release();
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<storage::RowTier> tier_;
  std::unique_ptr<storage::RowTable> table_;
};

absl::Status RunSize(const Trace& trace, const std::string& name, bool stationary, uint32_t percent,
                     const Report& report) {
  const size_t rows = size_t{trace.keys} * percent / 100;
  const size_t from = trace.batches.size() / 3;
  const double belady = BeladyHitRate(trace, rows, from);
  const double perfect = PerfectLfuHitRate(trace, rows, from);
  Figure f;
  f.bench = "hit_rate";
  f.unit = "of references";
  f.name = absl::StrCat(name, ", DRAM ", percent, " %: perfect LFU");
  f.value = perfect;
  f.limit = belady;
  f.limit_name = "Belady";
  report(f);
  f.peer = belady;
  f.peer_name = "Belady";
  double best = 0;  // of lru and lfu
  for (const Policy& policy : kPolicies) {
    auto rate = TableRun::HitRate(trace, rows, from, policy.kind);
    if (!rate.ok()) return rate.status();
    f.name = absl::StrCat(name, ", DRAM ", percent, " %: ", policy.name);
    f.value = *rate;
    f.limit = perfect;
    f.limit_name = "perfect LFU";
    if (policy.kind == EvictionKind::kLrfu && !stationary) {
      f.limit = best;
      f.limit_name = "the better of lru and lfu, wanted less .005 at least";
    }
    best = std::max(best, *rate);
    report(f);
  }
  return absl::OkStatus();
}

absl::Status RunHitRate(const BenchOptions&, const Report& report) {
  const std::pair<const char*, TraceKind> kinds[] = {{"stationary Zipf", TraceKind::kStationary},
                                                     {"drifting Zipf", TraceKind::kDrifting},
                                                     {"scan + Zipf", TraceKind::kScan}};
  for (const auto& [name, kind] : kinds) {
    const Trace trace =
        MakeTrace({.kind = kind, .keys = kKeys, .references = kReferences, .batch = kBatch});
    for (const uint32_t percent : {1, 5, 20}) {
      absl::Status s = RunSize(trace, name, kind == TraceKind::kStationary, percent, report);
      if (!s.ok()) return s;
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<NamedBenchmark> HitRateBenchmarks() {
  return {{"hit_rate", "Hit rates of the eviction policies beside Belady's and perfect LFU's",
           RunHitRate}};
}

}  // namespace strata::bench
