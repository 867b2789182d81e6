#include "tools/bench/hit_rate/reference_trace.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <random>
#include <utility>

namespace strata::bench {
namespace {

constexpr uint32_t kDriftEvery = 64;

// The inverse of the continuous Zipf distribution over ranks 0 .. n-1.
class ZipfRanks {
 public:
  ZipfRanks(uint32_t n, double s)
      : n_(n), power_(1 - s), span_(std::pow(static_cast<double>(n) + 1, 1 - s) - 1) {}
  uint32_t Draw(std::mt19937_64& random) const {
    const double u = static_cast<double>(random() >> 11) * 0x1p-53;
    const double x = std::pow(u * span_ + 1, 1 / power_);
    return std::min(n_ - 1, static_cast<uint32_t>(x) - 1);
  }

 private:
  const uint32_t n_;
  const double power_, span_;
};

double HitRate(const Trace& trace, size_t from, uint64_t misses) {
  const auto references = static_cast<double>(trace.batches.size() - from) *
                          static_cast<double>(trace.batch_references);
  return 1 - static_cast<double>(misses) / references;
}

}  // namespace

Trace MakeTrace(const TraceOptions& o) {
  std::mt19937_64 random(o.seed);
  const ZipfRanks zipf(o.keys, o.zipf);
  std::vector<uint32_t> by_rank(o.keys);
  std::iota(by_rank.begin(), by_rank.end(), 0u);
  std::shuffle(by_rank.begin(), by_rank.end(), random);
  Trace trace;
  trace.keys = o.kind == TraceKind::kScan ? 2 * o.keys : o.keys;
  trace.batch_references = o.batch;
  uint32_t scanned = 0;
  for (uint64_t at = 0; at + o.batch <= o.references; at += o.batch) {
    std::vector<uint32_t> batch;
    for (uint32_t i = 0; i < o.batch; ++i) {
      if (o.kind == TraceKind::kScan && random() % 4 == 0) {
        batch.push_back(o.keys + scanned);
        scanned = scanned + 1 == o.keys ? 0 : scanned + 1;
        continue;
      }
      batch.push_back(by_rank[zipf.Draw(random)]);
      if (o.kind == TraceKind::kDrifting && i % kDriftEvery == 0) {
        std::swap(by_rank[zipf.Draw(random)], by_rank[random() % o.keys]);
      }
    }
    std::sort(batch.begin(), batch.end());
    batch.erase(std::unique(batch.begin(), batch.end()), batch.end());
    trace.batches.push_back(std::move(batch));
  }
  if (o.kind == TraceKind::kStationary) trace.by_rank = std::move(by_rank);
  return trace;
}

double BeladyHitRate(const Trace& trace, size_t rows, size_t from) {
  constexpr uint32_t kNever = ~0u;
  std::vector<uint32_t> sequence;
  size_t first_counted = 0;
  for (size_t b = 0; b < trace.batches.size(); ++b) {
    if (b == from) first_counted = sequence.size();
    sequence.insert(sequence.end(), trace.batches[b].begin(), trace.batches[b].end());
  }
  std::vector<uint32_t> next(sequence.size());
  std::vector<uint32_t> seen(trace.keys, kNever);
  for (size_t i = sequence.size(); i-- > 0;) {
    next[i] = std::exchange(seen[sequence[i]], static_cast<uint32_t>(i));
  }
  // When each key in the tier is referenced next; kNever: not in the tier.
  std::vector<uint32_t> due(trace.keys, kNever);
  std::priority_queue<std::pair<uint32_t, uint32_t>> farthest;  // (due, key), some out of date
  size_t held = 0;
  uint64_t misses = 0;
  for (size_t i = 0; i < sequence.size(); ++i) {
    const uint32_t key = sequence[i];
    const bool hit = due[key] == i;
    misses += !hit && i >= first_counted;
    held -= hit;
    due[key] = kNever;
    if (next[i] == kNever) continue;
    while (!farthest.empty() && due[farthest.top().second] != farthest.top().first) farthest.pop();
    if (held == rows) {
      if (rows == 0 || farthest.top().first <= next[i]) continue;
      due[farthest.top().second] = kNever;
      --held;
    }
    due[key] = next[i];
    farthest.emplace(next[i], key);
    ++held;
  }
  return HitRate(trace, from, misses);
}

double PerfectLfuHitRate(const Trace& trace, size_t rows, size_t from) {
  std::vector<uint32_t> order = trace.by_rank;
  if (order.empty()) {
    std::vector<uint32_t> count(trace.keys, 0);
    for (const auto& batch : trace.batches) {
      for (const uint32_t key : batch) ++count[key];
    }
    order.resize(trace.keys);
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return count[a] > count[b]; });
  }
  std::vector<bool> held(trace.keys, false);
  for (size_t i = 0; i < std::min(rows, order.size()); ++i) held[order[i]] = true;
  uint64_t misses = 0;
  for (size_t b = from; b < trace.batches.size(); ++b) {
    for (const uint32_t key : trace.batches[b]) misses += !held[key];
  }
  return HitRate(trace, from, misses);
}

}  // namespace strata::bench
