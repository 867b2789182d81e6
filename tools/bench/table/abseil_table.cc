#include "tools/bench/table/abseil_table.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "proto/core/position.h"

namespace strata::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Row = std::array<float, kTableDim>;
using Map = absl::flat_hash_map<uint64_t, Row>;

constexpr size_t kAhead = 32;
constexpr float kRate = .01f;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
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

void Batch(Map& map, TableWork work, const std::vector<uint64_t>& keys, float* out) {
  for (size_t i = 0; i < keys.size(); ++i) {
    map.prefetch(keys[std::min(i + kAhead, keys.size() - 1)]);
    Row& row = map.find(keys[i])->second;
    float* const other = out + i * kTableDim;
    if (work == TableWork::kGather) {
      std::memcpy(other, row.data(), sizeof(row));
    } else {
      for (size_t d = 0; d < kTableDim; ++d) row[d] -= kRate * other[d];
    }
  }
}

}  // namespace

struct AbseilTable::Maps {
  struct One {
    Map map;
    std::array<std::vector<uint64_t>, kTableSets> sets;
    std::vector<float> out;
  };
  std::vector<One> of;  // by thread
};

AbseilTable::AbseilTable(size_t rows, size_t threads) : maps_(std::make_unique<Maps>()) {
  maps_->of.resize(threads);
  for (size_t t = 0; t < threads; ++t) {
    Maps::One& one = maps_->of[t];
    const size_t own = rows / threads;
    one.map.reserve(own);
    for (size_t i = 0; i < own; ++i) one.map.try_emplace(Mix64(t * own + i + 1));
    one.out.resize(kTableBatch * kTableDim, .001f);
    uint64_t x = 88172645463325252ull + t;
    for (std::vector<uint64_t>& set : one.sets) {
      for (size_t i = 0; i < kTableBatch; ++i) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        set.push_back(Mix64(t * own + x % own + 1));
      }
    }
  }
}

AbseilTable::~AbseilTable() = default;

double AbseilTable::Rate(TableWork work, double seconds) const {
  std::vector<double> rates(maps_->of.size());
  std::vector<std::thread> team;
  for (size_t t = 0; t < rates.size(); ++t) {
    team.emplace_back([&, t] {
      Maps::One& one = maps_->of[t];
      uint64_t batches = 0;
      const auto start = Clock::now();
      for (; Since(start) < seconds; ++batches) {
        Batch(one.map, work, one.sets[batches % kTableSets], one.out.data());
      }
      rates[t] = static_cast<double>(batches * kTableBatch) / Since(start) / 1e6;
    });
  }
  for (std::thread& thread : team) thread.join();
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

AbseilTable::Growth AbseilTable::Grow(uint64_t from, uint64_t to, size_t call) {
  Growth g;
  const double base = ResidentBytes();
  Map map;
  uint64_t rows = 0, next = 0;
  double total = 0;
  while (rows + call <= to) {
    const auto start = Clock::now();
    for (size_t i = 0; i < call; ++i) map.try_emplace(Mix64(++next));
    const double took = Since(start);
    rows += call;
    if (rows < from) continue;
    total += took;
    if (took * 1e3 > g.longest_ms) g.longest_ms = took * 1e3;
    if (took > 1e-2 || rows + call > to) {  // it has just moved, or ends
      const double own = static_cast<double>(rows) * (sizeof(uint64_t) + sizeof(Row));
      g.most_bytes =
          std::max(g.most_bytes, (ResidentBytes() - base - own) / static_cast<double>(rows));
    }
  }
  g.nanoseconds = total * 1e9 / static_cast<double>(to - from);
  return g;
}

}  // namespace strata::bench
