#include "tools/bench/ssd_bench.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <unordered_set>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/core/position.h"
#include "storage/rocks_tier.h"
#include "storage/row_file_tier.h"
#include "storage/row_table.h"
#include "storage/tiered_table.h"
#include "tools/bench/disk_limits.h"

namespace strata::bench {
namespace {

using storage::RowTier;
using storage::TierStats;

constexpr size_t kRowBytes = 128;
constexpr size_t kBatch = 4096;
constexpr uint64_t kMemory = uint64_t{256} << 20;
constexpr double kZipf = 1.05;
constexpr TableId kTable{1};

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

// The row of rank r lies at Mix64(r): ranks next to each other are nowhere near on disk.
void FillRow(uint64_t rank, uint8_t* row) {
  for (size_t i = 0; i < kRowBytes; i += 8) {
    const uint64_t v = Mix64(rank + i);
    std::memcpy(row + i, &v, 8);
  }
}

// Batches of distinct positions, ascending.
class Batches {
 public:
  Batches(uint64_t rows, uint64_t seed) : rows_(rows), random_(seed) {}

  std::span<const Position> Uniform() {
    return Take([this] { return random_() % rows_; });
  }
  // By the inverse of the continuous distribution, as rb.cc draws.
  std::span<const Position> Zipf() {
    const double most = std::pow(static_cast<double>(rows_) + 1, 1 - kZipf);
    return Take([this, most] {
      const double u = std::uniform_real_distribution<double>(0, 1)(random_);
      const auto rank = static_cast<uint64_t>(std::pow(u * (most - 1) + 1, 1 / (1 - kZipf))) - 1;
      return std::min(rank, rows_ - 1);
    });
  }

 private:
  template <typename Draw>
  std::span<const Position> Take(const Draw& draw) {
    seen_.clear();
    batch_.clear();
    while (batch_.size() < kBatch) {
      const uint64_t rank = draw();
      if (seen_.insert(rank).second) batch_.push_back(Position(Mix64(rank)));
    }
    std::sort(batch_.begin(), batch_.end());
    return batch_;
  }

  const uint64_t rows_;
  std::mt19937_64 random_;
  std::unordered_set<uint64_t> seen_;
  std::vector<Position> batch_;
};

absl::Status Load(RowTier& tier, uint64_t rows) {
  constexpr uint64_t kPart = 200'000;
  std::vector<uint8_t> memory(kPart * kRowBytes);
  for (uint64_t begin = 0; begin < rows; begin += kPart) {
    std::vector<std::pair<Position, uint64_t>> part;
    for (uint64_t r = begin; r < std::min(rows, begin + kPart); ++r) {
      part.emplace_back(Position(Mix64(r)), r);
    }
    std::sort(part.begin(), part.end());
    std::vector<Position> positions;
    std::vector<const uint8_t*> pointers;
    for (size_t i = 0; i < part.size(); ++i) {
      FillRow(part[i].second, &memory[i * kRowBytes]);
      positions.push_back(part[i].first);
      pointers.push_back(&memory[i * kRowBytes]);
    }
    absl::Status s = tier.Write(kTable, positions, pointers, kRowBytes);
    if (!s.ok()) return s;
  }
  return tier.Sync();
}

struct Rate {
  double rows_per_second = 0;
  double cpu_per_million = 0;
};

// Calls `batch` for a window; it returns rows or an error.
template <typename Batch>
absl::StatusOr<Rate> Measure(double seconds, const Batch& batch) {
  const absl::Time begin = absl::Now();
  const double cpu = CpuSeconds();
  size_t rows = 0;
  while (absl::Now() - begin < absl::Seconds(seconds)) {
    absl::Status s = batch();
    if (!s.ok()) return s;
    rows += kBatch;
  }
  const double took = absl::ToDoubleSeconds(absl::Now() - begin);
  return Rate{static_cast<double>(rows) / took,
              (CpuSeconds() - cpu) / static_cast<double>(rows) * 1e6};
}

absl::Status ColdReads(const std::string& name, RowTier& tier, const std::string& file,
                       uint64_t rows, const BenchOptions& o, const Report& report) {
  std::vector<double> rates, caps, cpus;
  const TierStats before = tier.stats();
  for (int round = 0; round < o.rounds; ++round) {
    Batches batches(rows, 100 + static_cast<uint64_t>(round));
    caps.push_back(RandomReadRate(file, 4096, 64, o.seconds / 2));
    auto rate = Measure(o.seconds, [&]() -> absl::Status {
      size_t found = 0;
      absl::Status s =
          tier.Read(kTable, batches.Uniform(), kRowBytes, [&](size_t, const uint8_t*) { ++found; });
      if (s.ok() && found != kBatch) return absl::InternalError("rows are missing");
      return s;
    });
    if (!rate.ok()) return rate.status();
    caps.push_back(RandomReadRate(file, 4096, 64, o.seconds / 2));
    rates.push_back(rate->rows_per_second);
    cpus.push_back(rate->cpu_per_million);
  }
  const TierStats after = tier.stats();
  report({.bench = "ssd",
          .name = name + " cold uniform reads, wanted 0.85x",
          .value = Median(rates),
          .unit = "rows/s",
          .limit = Median(caps),
          .limit_name = "4 KiB random reads",
          .peer = {},
          .peer_name = ""});
  report({.bench = "ssd",
          .name = name + " cold uniform reads",
          .value = Median(cpus),
          .unit = "CPU-s/Mrows",
          .limit = {},
          .limit_name = "",
          .peer = {},
          .peer_name = ""});
  report({.bench = "ssd",
          .name = name + " bytes read per row",
          .value = static_cast<double>(after.read_bytes - before.read_bytes) /
                   static_cast<double>(after.rows_asked - before.rows_asked),
          .unit = "bytes",
          .limit = {},
          .limit_name = "",
          .peer = {},
          .peer_name = ""});
  return absl::OkStatus();
}

// Keys per second that rb.cc prints in its last window; nothing if it cannot run.
std::optional<double> PeerRate(const std::string& binary, const std::string& directory,
                               const std::string& arguments, const std::string& unit) {
  const std::string command = absl::StrCat(binary, " ", directory, " ", arguments, " 2>&1");
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::vector<double> rates;
  char line[512];
  while (fgets(line, sizeof(line), pipe) != nullptr) {
    const char* at = std::strstr(line, ": ");
    const char* end = std::strstr(line, unit.c_str());
    if (at != nullptr && end != nullptr) rates.push_back(std::strtod(at + 2, nullptr));
  }
  pclose(pipe);
  if (rates.empty()) return std::nullopt;
  return Median(rates) * (unit == " kkeys/s" ? 1e3 : 1e6);
}

// rb.cc, compiled, with its rows ingested; its best settings of those in the table of peers.
class Peer {
 public:
  Peer(const BenchOptions& o, uint64_t rows) : directory_(o.directory + "/rb") {
    if (o.baselines.empty()) return;
    binary_ = o.directory + "/rb-peer";
    const std::string build =
        absl::StrCat("g++ -O2 -std=c++17 -o ", binary_, " ", o.baselines,
                     "/rocks/rb.cc -lrocksdb -lpthread 2>/dev/null && ", binary_, " ", directory_,
                     " ingest n=", rows, " bs=1024 >/dev/null");
    if (std::system(build.c_str()) != 0) binary_.clear();
    common_ = absl::StrCat(" n=", rows, " bs=1024 cache=256 ");
    seconds_ = o.seconds;
  }
  std::optional<double> Reads() const {
    if (binary_.empty()) return std::nullopt;
    return PeerRate(binary_, directory_,
                    absl::StrCat("read", common_, "dist=zipf thr=8 warm=10 secs=", seconds_ / 3),
                    " kkeys/s");
  }
  std::optional<double> Updates() const {
    if (binary_.empty()) return std::nullopt;
    return PeerRate(binary_, directory_, absl::StrCat("update", common_, "secs=", seconds_ / 3),
                    " Mkeys/s");
  }

 private:
  const std::string directory_;
  std::string binary_;
  std::string common_;
  double seconds_ = 0;
};

absl::Status Zipf(const std::string& name, RowTier& tier, uint64_t rows, const Peer& peer,
                  const BenchOptions& o, const Report& report) {
  // The memtables and a reader are counted beside the index.
  const uint64_t spent = tier.stats().memory_bytes + (uint64_t{24} << 20);
  auto table = storage::MakeTieredTable({.table = kTable,
                                         .row_bytes = kRowBytes,
                                         .dram_limit_bytes = kMemory - std::min(spent, kMemory / 2),
                                         .below = &tier,
                                         .below_content = storage::BelowContent::kAdopt});
  if (!table.ok()) return table.status();
  Batches batches(rows, 7);
  std::vector<storage::RowRef> refs(kBatch);
  std::vector<uint8_t> out(kBatch * kRowBytes);
  const auto read = [&]() -> absl::Status {
    absl::Status s = (*table)->Resolve(batches.Zipf(), storage::Access::kRead, refs);
    if (!s.ok()) return s;
    for (size_t i = 0; i < kBatch; ++i) {
      if (refs[i].row == nullptr) return absl::InternalError("rows are missing");
      std::memcpy(&out[i * kRowBytes], refs[i].row, kRowBytes);
    }
    (*table)->Release();
    return absl::OkStatus();
  };
  const auto update = [&]() -> absl::Status {
    absl::Status s = (*table)->Resolve(batches.Zipf(), storage::Access::kUpdate, refs);
    if (!s.ok()) return s;
    for (const storage::RowRef& ref : refs) {
      for (size_t i = 0; i < kRowBytes; i += 4) ++ref.row[i];
    }
    (*table)->Release();
    return absl::OkStatus();
  };
  if (auto warm = Measure(4 * o.seconds, read); !warm.ok()) return warm.status();
  const storage::TableCounters hits = (*table)->counters();
  std::vector<double> reads, updates, peer_reads, peer_updates;
  for (int round = 0; round < o.rounds; ++round) {
    if (const auto rate = peer.Reads()) peer_reads.push_back(*rate);
    auto rate = Measure(o.seconds, read);
    if (!rate.ok()) return rate.status();
    reads.push_back(rate->rows_per_second);
  }
  const storage::TableCounters now = (*table)->counters();
  if (auto warm = Measure(4 * o.seconds, update); !warm.ok()) return warm.status();
  const TierStats before = tier.stats();
  for (int round = 0; round < o.rounds; ++round) {
    if (const auto rate = peer.Updates()) peer_updates.push_back(*rate);
    auto rate = Measure(o.seconds, update);
    if (!rate.ok()) return rate.status();
    updates.push_back(rate->rows_per_second);
  }
  if (absl::Status s = tier.Sync(); !s.ok()) return s;
  const TierStats after = tier.stats();
  std::optional<double> peer_read, peer_update;
  if (!peer_reads.empty()) peer_read = Median(peer_reads);
  // It has no read-modify-write: a MultiGet and a WriteBatch one after the other.
  if (!peer_updates.empty() && peer_read) {
    peer_update = 1 / (1 / *peer_read + 1 / Median(peer_updates));
  }
  const auto say = [&](const std::string& what, double value, const std::string& unit,
                       std::optional<double> best = {}) {
    report({.bench = "ssd",
            .name = absl::StrCat(name, " ", what),
            .value = value,
            .unit = unit,
            .limit = {},
            .limit_name = "",
            .peer = best,
            .peer_name = best ? "RocksDB (rb.cc), same memory" : ""});
  };
  const auto found = static_cast<double>(now.hits - hits.hits);
  say("zipf reads, wanted 2x the peer", Median(reads), "rows/s", peer_read);
  say("zipf share of reads found in DRAM",
      found / (found + static_cast<double>(now.ssd_reads - hits.ssd_reads)), "");
  say("zipf read-modify-writes, wanted 2x the peer", Median(updates), "rows/s", peer_update);
  say("write amplification, wanted <= 8",
      static_cast<double>(after.written_bytes - before.written_bytes) /
          static_cast<double>(after.asked_bytes - before.asked_bytes),
      "x");
  say("space amplification, wanted <= 1.5",
      static_cast<double>(after.file_bytes) / static_cast<double>(rows * kRowBytes), "x");
  say("memory of the index", static_cast<double>(after.memory_bytes) / 1e6, "MB");
  return absl::OkStatus();
}

absl::Status RunTier(const std::string& name, absl::StatusOr<std::unique_ptr<RowTier>> tier,
                     const std::string& directory, const std::string& file, const Peer& peer,
                     const BenchOptions& o, const Report& report) {
  if (!tier.ok()) return tier.status();
  const uint64_t rows = RowCount();
  const absl::Time begin = absl::Now();
  if (absl::Status s = Load(**tier, rows); !s.ok()) return s;
  report({.bench = "ssd",
          .name = name + " load",
          .value = static_cast<double>(rows) / absl::ToDoubleSeconds(absl::Now() - begin),
          .unit = "rows/s",
          .limit = {},
          .limit_name = "",
          .peer = {},
          .peer_name = ""});
  absl::Status s = ColdReads(name, **tier, file, rows, o, report);
  if (s.ok()) s = Zipf(name, **tier, rows, peer, o, report);
  tier->reset();
  std::filesystem::remove_all(directory);
  return s;
}

absl::Status RunSsd(const BenchOptions& o, const Report& report) {
  const Peer peer(o, RowCount());
  const std::string rowfile = o.directory + "/rowfile";
  const std::string rocks = o.directory + "/rocks";
  const std::string cap = rowfile + "/ROWS";
  absl::Status s =
      RunTier("rowfile", storage::OpenRowFileTier({.directory = rowfile, .partitions = 4096}),
              rowfile, cap, peer, o, report);
  if (!s.ok()) return s;
  // The cap of RocksDB's part is measured on a file of zeros of its own.
  const std::string probe = o.directory + "/probe";
  if (!WriteProbe(probe, uint64_t{2} << 30)) return absl::InternalError("cannot write " + probe);
  return RunTier("rocksdb", storage::OpenRocksTier({.directory = rocks, .partitions = 4096}), rocks,
                 probe, peer, o, report);
}

}  // namespace

std::vector<NamedBenchmark> SsdBenchmarks() {
  return {{"ssd", "SSD tiers: cold batched reads, Zipf through the tiered table, amplification",
           RunSsd}};
}

}  // namespace strata::bench
