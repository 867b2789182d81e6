#include "tools/bench/hit_rate/reference_trace.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

namespace strata::bench {
namespace {

// The fewest misses that any tier can have, by trying every choice.
uint32_t FewestMisses(const std::vector<uint32_t>& sequence, size_t at, std::set<uint32_t> held,
                      size_t rows) {
  if (at == sequence.size()) return 0;
  if (held.contains(sequence[at])) return FewestMisses(sequence, at + 1, std::move(held), rows);
  uint32_t fewest = FewestMisses(sequence, at + 1, held, rows);  // it passes by
  std::set<uint32_t> with = held;
  with.insert(sequence[at]);
  if (held.size() < rows) {
    return 1 + std::min(fewest, FewestMisses(sequence, at + 1, with, rows));
  }
  for (const uint32_t leaves : held) {
    std::set<uint32_t> without = with;
    without.erase(leaves);
    fewest = std::min(fewest, FewestMisses(sequence, at + 1, without, rows));
  }
  return 1 + fewest;
}

TEST_CASE("Belady's rate is the best that any choice gives", "[bench]") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 60; ++round) {
    Trace trace;
    trace.keys = 6;
    trace.batch_references = 2;
    std::vector<uint32_t> sequence;
    for (int b = 0; b < 5; ++b) {
      std::set<uint32_t> batch = {static_cast<uint32_t>(random() % 6),
                                  static_cast<uint32_t>(random() % 6)};
      trace.batches.emplace_back(batch.begin(), batch.end());
      sequence.insert(sequence.end(), batch.begin(), batch.end());
    }
    for (const size_t rows : {0, 1, 2, 3}) {
      const uint32_t misses = FewestMisses(sequence, 0, {}, rows);
      INFO("round " << round << ", rows " << rows << ", fewest misses " << misses);
      CHECK(BeladyHitRate(trace, rows, 0) == Approx(1 - misses / 10.0));
    }
  }
}

TEST_CASE("perfect LFU holds the most popular keys", "[bench]") {
  Trace trace{.keys = 3, .batch_references = 2, .batches = {{0, 1}, {1, 2}, {1}, {0, 1}}};
  CHECK(PerfectLfuHitRate(trace, 1, 0) == Approx(1 - 3 / 8.0));
  CHECK(PerfectLfuHitRate(trace, 2, 0) == Approx(1 - 1 / 8.0));
  CHECK(PerfectLfuHitRate(trace, 1, 2) == Approx(1 - 1 / 4.0));
  trace.by_rank = {2, 0, 1};  // what the distribution says counts, not what came
  CHECK(PerfectLfuHitRate(trace, 1, 0) == Approx(1 - 6 / 8.0));
}

TEST_CASE("traces are of the kind that they say", "[bench]") {
  for (const TraceKind kind : {TraceKind::kStationary, TraceKind::kDrifting, TraceKind::kScan}) {
    const Trace trace =
        MakeTrace({.kind = kind, .keys = 1000, .references = 100'000, .batch = 500});
    REQUIRE(trace.batches.size() == 200);
    std::vector<uint32_t> early(trace.keys, 0), late(trace.keys, 0);
    for (size_t b = 0; b < 200; ++b) {
      CHECK(std::is_sorted(trace.batches[b].begin(), trace.batches[b].end()));
      for (const uint32_t key : trace.batches[b]) ++(b < 100 ? early : late)[key];
    }
    uint32_t scanned = 0;
    for (uint32_t k = 1000; k < trace.keys; ++k) scanned += early[k] + late[k];
    CHECK((kind == TraceKind::kScan ? scanned > 24'000 && scanned < 26'000 : scanned == 0));
    CHECK(trace.by_rank.size() == (kind == TraceKind::kStationary ? 1000 : 0));
    // Keys that were always there early, and seldom late.
    uint32_t gone = 0;
    for (uint32_t k = 0; k < 1000; ++k) gone += early[k] > 60 && late[k] < 30;
    CHECK((gone > 0) == (kind == TraceKind::kDrifting));
  }
}

}  // namespace
}  // namespace strata::bench
