#include "tools/bench/ssd/bench.h"

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "storage/rocks/tier.h"
#include "storage/row_file/tier.h"
#include "tools/bench/ssd/disk_limits.h"
#include "tools/bench/ssd/load.h"
#include "tools/bench/ssd/peer.h"

namespace strata::bench {
namespace {

using storage::Access;
using storage::RowTier;
using storage::TierStats;

constexpr uint64_t kMemory = uint64_t{256} << 20;
constexpr size_t kColdReaders = SsdShards::kShards;  // as many as a server's shards
constexpr size_t kClients = 16;
// Of rows written back, for a write amplification that is steady: some sixty memtables.
constexpr double kSteadyBytes = 512e6;
constexpr double kMostWarming = 240;  // seconds

uint64_t RowCount() {
  const char* rows = std::getenv("STRATA_SSD_ROWS");
  return rows == nullptr ? 20'000'000 : std::strtoull(rows, nullptr, 10);
}

double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Anonymous memory of this process in RAM.
double ResidentBytes() {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  if (file == nullptr) return 0;
  char line[256];
  double kilobytes = 0;
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    if (std::sscanf(line, "RssAnon: %lf kB", &kilobytes) == 1) break;
  }
  std::fclose(file);
  return kilobytes * 1024;
}

struct Rate {
  double rows_per_second = 0;
  double cpu_per_million = 0;
};

// Every thread calls batch(thread), which works on kSsdBatch rows, until the window is over.
absl::StatusOr<Rate> Measure(double seconds, size_t threads,
                             const std::function<absl::Status(size_t)>& batch) {
  std::atomic<uint64_t> rows{0};
  Mutex mu;
  absl::Status error;
  const absl::Time begin = absl::Now();
  const double cpu = CpuSeconds();
  std::vector<std::thread> running;
  for (size_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      while (absl::Now() - begin < absl::Seconds(seconds)) {
        if (absl::Status s = batch(t); !s.ok()) {
          const MutexLock lock(&mu);
          error = s;
          return;
        }
        rows += kSsdBatch;
      }
    });
  }
  for (std::thread& t : running) t.join();
  if (!error.ok()) return error;
  const double took = absl::ToDoubleSeconds(absl::Now() - begin);
  const auto count = static_cast<double>(rows.load());
  return Rate{count / took, (CpuSeconds() - cpu) / count * 1e6};
}

// What all parts of the benchmark of one tier know.
struct Run {
  std::string name;
  uint64_t fixed_bytes;  // of the tier beside its index
  std::string probe;     // a file for the disk's limit
  const SsdPeer& peer;
  const BenchOptions& options;
  const Report& report;

  void Say(const std::string& what, double value, const std::string& unit,
           std::optional<double> limit = {}, std::optional<double> best = {}) const {
    report({.bench = "ssd",
            .name = absl::StrCat(name, " ", what),
            .value = value,
            .unit = unit,
            .limit = limit,
            .limit_name = limit ? "4 KiB random reads" : "",
            .peer = best,
            .peer_name = best ? "RocksDB (rb.cc), same cache" : ""});
  }
};

absl::Status ColdReads(const Run& run, RowTier& tier) {
  const BenchOptions& o = run.options;
  std::vector<double> rates, caps, cpus;
  const TierStats before = tier.stats();
  const auto cap = [&] { caps.push_back(RandomReadRate(run.probe, 4096, 128, o.seconds / 2)); };
  for (int round = 0; round < o.rounds; ++round) {
    std::vector<SsdBatches> batches;
    for (size_t t = 0; t < kColdReaders; ++t) {
      batches.emplace_back(RowCount(), 100 + t + kColdReaders * static_cast<size_t>(round));
    }
    cap();
    auto rate = Measure(o.seconds, kColdReaders, [&](size_t t) -> absl::Status {
      size_t found = 0;
      absl::Status s = tier.Read(kSsdTable, batches[t].Uniform(), kSsdRowBytes,
                                 [&](size_t, const uint8_t*) { ++found; });
      if (s.ok() && found != kSsdBatch) return absl::InternalError("rows are missing");
      return s;
    });
    if (!rate.ok()) return rate.status();
    cap();
    rates.push_back(rate->rows_per_second);
    cpus.push_back(rate->cpu_per_million);
  }
  const TierStats after = tier.stats();
  run.Say("cold uniform reads, wanted 0.85x", Median(rates), "rows/s", Median(caps));
  run.Say("cold uniform reads", Median(cpus), "CPU-s/Mrows");
  run.Say("bytes read per row",
          static_cast<double>(after.read_bytes - before.read_bytes) /
              static_cast<double>(after.rows_asked - before.rows_asked),
          "bytes");
  return absl::OkStatus();
}

// Clients of the shards in windows that follow each other.
class Clients {
 public:
  Clients(SsdShards* shards, uint64_t seed) : shards_(shards) {
    for (size_t t = 0; t < kClients; ++t) {
      batches_.emplace_back(RowCount(), seed + t);
      out_.emplace_back(kSsdBatch * kSsdRowBytes);
    }
  }
  absl::StatusOr<Rate> Window(double seconds, Access access) {
    return Measure(seconds, kClients, [&](size_t t) {
      return shards_->Work(batches_[t].Zipf(), access, t, out_[t].data());
    });
  }

 private:
  SsdShards* const shards_;
  std::vector<SsdBatches> batches_;
  std::vector<std::vector<uint8_t>> out_;
};

absl::Status ZipfReads(const Run& run, const SsdShards& shards, Clients& clients,
                       std::vector<double>& peer) {
  const BenchOptions& o = run.options;
  if (auto warm = clients.Window(8 * o.seconds, Access::kRead); !warm.ok()) return warm.status();
  const storage::TableCounters before = shards.counters();
  std::vector<double> rates, cpus;
  for (int round = 0; round < o.rounds; ++round) {
    if (const auto rate = run.peer.Reads(o.seconds / 3)) peer.push_back(*rate);
    auto rate = clients.Window(o.seconds, Access::kRead);
    if (!rate.ok()) return rate.status();
    rates.push_back(rate->rows_per_second);
    cpus.push_back(rate->cpu_per_million);
  }
  const storage::TableCounters after = shards.counters();
  std::optional<double> best;
  if (!peer.empty()) best = Median(peer);
  run.Say("zipf reads, wanted 2x the peer", Median(rates), "rows/s", {}, best);
  run.Say("zipf reads", Median(cpus), "CPU-s/Mrows");
  const auto hits = static_cast<double>(after.hits - before.hits);
  run.Say("zipf share of reads found in DRAM",
          hits / (hits + static_cast<double>(after.ssd_reads - before.ssd_reads)), "");
  return absl::OkStatus();
}

// It has no read-modify-write: a MultiGet and a WriteBatch one after the other.
absl::Status ZipfUpdates(const Run& run, RowTier& tier, Clients& clients,
                         const std::vector<double>& peer_reads, double resident_before) {
  const BenchOptions& o = run.options;
  // Until deltas are merged as often as they come.
  double warmed = 0;
  for (const uint64_t from = tier.stats().asked_bytes;
       warmed < kMostWarming && static_cast<double>(tier.stats().asked_bytes - from) < kSteadyBytes;
       warmed += 4 * o.seconds) {
    auto warm = clients.Window(4 * o.seconds, Access::kUpdate);
    if (!warm.ok()) return warm.status();
  }
  const TierStats before = tier.stats();
  std::vector<double> rates, cpus, peer;
  for (int round = 0; round < o.rounds; ++round) {
    if (const auto rate = run.peer.Updates(o.seconds / 3)) peer.push_back(*rate);
    auto rate = clients.Window(o.seconds, Access::kUpdate);
    if (!rate.ok()) return rate.status();
    rates.push_back(rate->rows_per_second);
    cpus.push_back(rate->cpu_per_million);
  }
  const double resident = ResidentBytes() - resident_before;
  for (double more = 0;
       more < kMostWarming &&
       static_cast<double>(tier.stats().asked_bytes - before.asked_bytes) < kSteadyBytes;
       more += 4 * o.seconds) {
    if (auto on = clients.Window(4 * o.seconds, Access::kUpdate); !on.ok()) return on.status();
  }
  const TierStats after = tier.stats();
  std::optional<double> best;
  if (!peer.empty() && !peer_reads.empty()) {
    best = 1 / (1 / Median(peer_reads) + 1 / Median(peer));
  }
  run.Say("zipf read-modify-writes, wanted 2x the peer", Median(rates), "rows/s", {}, best);
  run.Say("zipf read-modify-writes", Median(cpus), "CPU-s/Mrows");
  const auto asked = static_cast<double>(after.asked_bytes - before.asked_bytes);
  run.Say("rows written back meanwhile", asked / 1e6, "MB");
  if (asked > 0) {
    run.Say("write amplification, wanted <= 8",
            static_cast<double>(after.written_bytes - before.written_bytes) / asked, "x");
  }
  run.Say("space amplification, wanted <= 1.5",
          static_cast<double>(after.file_bytes) / static_cast<double>(RowCount() * kSsdRowBytes),
          "x");
  run.Say("memory of the index", static_cast<double>(after.memory_bytes) / 1e6, "MB");
  run.Say("resident memory, more than after the cold reads", resident / 1e6, "MB");
  return absl::OkStatus();
}

absl::Status Zipf(const Run& run, RowTier& tier) {
  malloc_trim(0);  // what the load left behind
  const double resident = ResidentBytes();
  const uint64_t spent = std::min(tier.stats().memory_bytes + run.fixed_bytes, kMemory * 3 / 4);
  auto shards = SsdShards::Make(&tier, kMemory - spent);
  if (!shards.ok()) return shards.status();
  Clients clients(shards->get(), 7);
  std::vector<double> peer_reads;
  absl::Status s = ZipfReads(run, **shards, clients, peer_reads);
  if (s.ok()) s = ZipfUpdates(run, tier, clients, peer_reads, resident);
  if (s.ok()) {
    run.Say("DRAM for rows", static_cast<double>((*shards)->counters().dram_bytes) / 1e6, "MB");
  }
  return s;
}

// Waits until merges and compactions of the load are over: nothing was written for two seconds.
void Settle(const RowTier& tier) {
  uint64_t written = 0;
  for (int i = 0; i < 60 && written != tier.stats().written_bytes; ++i) {
    written = tier.stats().written_bytes;
    absl::SleepFor(absl::Seconds(2));
  }
}

absl::Status RunTier(const Run& run, absl::StatusOr<std::unique_ptr<RowTier>> tier) {
  if (!tier.ok()) return tier.status();
  const absl::Time begin = absl::Now();
  if (absl::Status s = LoadSsdRows(**tier, RowCount()); !s.ok()) return s;
  run.Say("load", static_cast<double>(RowCount()) / absl::ToDoubleSeconds(absl::Now() - begin),
          "rows/s");
  Settle(**tier);
  absl::Status s = ColdReads(run, **tier);
  if (!s.ok() || std::getenv("STRATA_SSD_COLD") != nullptr) return s;  // options, one by one
  return Zipf(run, **tier);
}

absl::Status RunSsd(const BenchOptions& o, const Report& report) {
  const SsdPeer peer(o.baselines, o.directory, RowCount());
  const std::string probe = o.directory + "/probe";
  if (!WriteProbe(probe, RowCount() * kSsdRowBytes)) {
    return absl::InternalError("cannot write " + probe);
  }
  const char* only = std::getenv("STRATA_SSD_TIER");
  const auto wanted = [only](const std::string& name) { return only == nullptr || name == only; };
  absl::Status s;
  if (wanted("rowfile")) {
    const storage::RowFileTierOptions options{.directory = o.directory + "/rowfile",
                                              .partitions = 4096};
    // Two memtables, readers of the shards, a merge (storage/row_file/tier.h).
    const uint64_t fixed = 2 * options.memtable_bytes * 5 / 4 + (uint64_t{22} << 20);
    s = RunTier({"rowfile", fixed, probe, peer, o, report}, storage::OpenRowFileTier(options));
    std::filesystem::remove_all(options.directory);
  }
  if (s.ok() && wanted("rocksdb")) {
    // A block cache that holds index and filters: some 2.2 bytes a row.
    const char* changes = std::getenv("STRATA_SSD_ROCKSDB");
    const storage::RocksTierOptions options{.directory = o.directory + "/rocks",
                                            .partitions = 4096,
                                            .block_cache_bytes = uint64_t{96} << 20,
                                            .io = storage::RocksTierOptions::Io::kDirect,
                                            .changes = changes == nullptr ? "" : changes};
    const uint64_t fixed = storage::kMaxMemtables * options.memtable_bytes +
                           options.block_cache_bytes + (uint64_t{16} << 20);
    s = RunTier({"rocksdb", fixed, probe, peer, o, report}, storage::OpenRocksTier(options));
    std::filesystem::remove_all(options.directory);
  }
  return s;
}

}  // namespace

std::vector<NamedBenchmark> SsdBenchmarks() {
  return {{"ssd", "SSD tiers: cold batched reads, Zipf through the tiered table, amplification",
           RunSsd}};
}

}  // namespace strata::bench
