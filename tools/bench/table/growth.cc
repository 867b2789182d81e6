#include "tools/bench/table/growth.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/core/position.h"
#include "server/table/shard_table.h"
#include "storage/dram/table.h"
#include "storage/row/table.h"

namespace strata::bench {
namespace {

constexpr uint64_t kFrom = 1'000'000, kTo = 20'000'000;
constexpr size_t kWeightBytes = 64;
constexpr size_t kRowBytes = kWeightBytes + 8;  // with metadata
constexpr size_t kChunk = server::ShardTable::kChunkRows;
constexpr double kLongestMs = 5, kMostBytes = 16;  // the bars

double Milliseconds(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

double ResidentBytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  std::string word;
  double kib = 0;
  while (file >> word) {
    if (word == "Rss:") file >> kib;
  }
  return kib * 1024;
}

struct Growth {
  double longest_ms = 0, longest_cpu_ms = 0, total_ms = 0;
  double most_counted = 0, most_resident = 0;  // bytes a row
};

absl::StatusOr<Growth> GrowOnce(uint64_t seed) {
  std::vector<Position> batch(kChunk);
  std::vector<storage::RowRef> refs(kChunk);
  auto table = storage::MakeDramTable({.row_bytes = kRowBytes});
  const double base = ResidentBytes();
  Growth g;
  uint64_t next = seed << 32, rows = 0, look_at = kFrom;
  while (rows + kChunk <= kTo) {
    for (Position& p : batch) p = Position(Mix64(++next));
    std::sort(batch.begin(), batch.end());
    const double start = Milliseconds(CLOCK_MONOTONIC);
    const double cpu_start = Milliseconds(CLOCK_THREAD_CPUTIME_ID);
    absl::Status s = table->Resolve(batch, storage::Access::kUpdate, refs);
    const double cpu = Milliseconds(CLOCK_THREAD_CPUTIME_ID) - cpu_start;
    const double took = Milliseconds(CLOCK_MONOTONIC) - start;
    if (!s.ok()) return s;
    for (const storage::RowRef& ref : refs) std::memset(ref.row, 1, kRowBytes);
    table->Release();
    rows += kChunk;
    if (rows < kFrom) continue;
    g.longest_ms = std::max(g.longest_ms, took);
    g.longest_cpu_ms = std::max(g.longest_cpu_ms, cpu);
    g.total_ms += took;
    const double own = static_cast<double>(rows) * (kWeightBytes + sizeof(Position));
    const double counted = static_cast<double>(table->counters().dram_bytes);
    g.most_counted = std::max(g.most_counted, (counted - own) / static_cast<double>(rows));
    if (rows < look_at) continue;
    look_at = rows + rows / 100;
    const double resident = ResidentBytes() - base;
    g.most_resident = std::max(g.most_resident, (resident - own) / static_cast<double>(rows));
  }
  return g;
}

struct Touch {
  double longest_ms = 0, longest_cpu_ms = 0;
};

// What this machine takes at worst for as much new memory and nothing else: bytes of the same
// number of new rows are written, call by call.
absl::StatusOr<Touch> TouchOnce() {
  constexpr size_t kCallBytes = kChunk * (kRowBytes + sizeof(Position));
  constexpr size_t kCalls = (kTo - kFrom) / kChunk;
  void* memory = ::mmap(nullptr, kCalls * kCallBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return absl::ErrnoToStatus(errno, "mmap of new memory");
  ::madvise(memory, kCalls * kCallBytes, MADV_NOHUGEPAGE);
  Touch t;
  for (size_t call = 0; call < kCalls; ++call) {
    const double start = Milliseconds(CLOCK_MONOTONIC);
    const double cpu_start = Milliseconds(CLOCK_THREAD_CPUTIME_ID);
    std::memset(static_cast<char*>(memory) + call * kCallBytes, 1, kCallBytes);
    const double cpu = Milliseconds(CLOCK_THREAD_CPUTIME_ID) - cpu_start;
    t.longest_ms = std::max(t.longest_ms, Milliseconds(CLOCK_MONOTONIC) - start);
    t.longest_cpu_ms = std::max(t.longest_cpu_ms, cpu);
  }
  ::munmap(memory, kCalls * kCallBytes);
  return t;
}

void ReportMedian(const std::string& name, const std::string& unit, std::vector<double> values,
                  double bar, const Report& report) {
  Figure f;
  f.bench = "table";
  f.name = name;
  f.value = Median(std::move(values));
  f.unit = unit;
  if (bar > 0) {
    f.limit = bar;
    f.limit_name = "bar (at most)";
  }
  report(f);
}

}  // namespace

absl::Status MeasureGrowth(const BenchOptions& options, const Report& report) {
  std::vector<double> longest, cpu, per_row, counted, resident, touch, touch_cpu;
  for (int round = 0; round < options.rounds; ++round) {
    const absl::StatusOr<Growth> g = GrowOnce(static_cast<uint64_t>(round) + 1);
    if (!g.ok()) return g.status();
    longest.push_back(g->longest_ms);
    cpu.push_back(g->longest_cpu_ms);
    per_row.push_back(g->total_ms * 1e6 / static_cast<double>(kTo - kFrom));
    counted.push_back(g->most_counted);
    resident.push_back(g->most_resident);
    const absl::StatusOr<Touch> t = TouchOnce();
    if (!t.ok()) return t.status();
    touch.push_back(t->longest_ms);
    touch_cpu.push_back(t->longest_cpu_ms);
  }
  const std::string grow = "1 to 20 million rows: ";
  ReportMedian(grow + "longest call by the clock", "ms", longest, kLongestMs, report);
  ReportMedian(grow + "longest call, CPU time", "ms", cpu, kLongestMs, report);
  const std::string bare = "bare first writes of as much memory: ";
  ReportMedian(bare + "longest call by the clock", "ms", touch, 0, report);
  ReportMedian(bare + "longest call, CPU time", "ms", touch_cpu, 0, report);
  ReportMedian(grow + "time per new row", "ns", per_row, 0, report);
  ReportMedian(grow + "most overhead, counted", "bytes/row", counted, kMostBytes, report);
  ReportMedian(grow + "most overhead, resident", "bytes/row", resident, kMostBytes, report);
  return absl::OkStatus();
}

}  // namespace strata::bench
