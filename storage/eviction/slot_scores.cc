#include "storage/eviction/slot_scores.h"

#include <algorithm>
#include <array>

namespace strata::storage {
namespace {

// Scores are counted in buckets of sixteen.
constexpr int kBucketShift = 4;
constexpr size_t kBuckets = (size_t{SlotScores::kMost} >> kBucketShift) + 1;

using Histogram = std::array<uint32_t, kBuckets>;

// The first bucket with which at least `want` rows lie in it and below; the last where there are
// fewer. `rows`: how many those are.
size_t BucketOf(const Histogram& histogram, size_t want, size_t& rows) {
  rows = 0;
  for (size_t b = 0; b < kBuckets; ++b) {
    rows += histogram[b];
    if (rows >= want) return b;
  }
  return kBuckets - 1;
}

}  // namespace

void SlotScores::Lower(Score by) {
  for (Score& s : scores_) {
    if (s != 0) s = static_cast<Score>(s > by ? s - by : 1);
  }
}

void SlotScores::Halve() {
  for (Score& s : scores_) {
    if (s != 0) s = std::max<Score>(1, s / 2);
  }
}

void SlotScores::Choose(size_t count, const EvictionPolicy::MayLeave& may_leave,
                        std::vector<uint32_t>& victims) {
  if (count == 0) return;
  const size_t regions = std::max<size_t>(1, scores_.size() / kRegion);
  if (regions > 1 && count <= kRegion / 16) {
    const size_t before = victims.size();
    region_ %= regions;
    Lowest(scores_.size() * region_ / regions, scores_.size() * (region_ + 1) / regions, count,
           may_leave, victims);
    ++region_;
    if (victims.size() == before + count) return;
    victims.resize(before);
  }
  Lowest(0, scores_.size(), count, may_leave, victims);
}

void SlotScores::Lowest(size_t begin, size_t end, size_t count,
                        const EvictionPolicy::MayLeave& may_leave, std::vector<uint32_t>& victims) {
  Histogram histogram{};
  for (size_t slot = begin; slot < end; ++slot) {
    if (scores_[slot] != 0) ++histogram[scores_[slot] >> kBucketShift];
  }
  std::vector<uint64_t> candidates;  // score, then slot from the hand on
  for (size_t want = count;;) {
    size_t rows = 0;
    const size_t bucket = BucketOf(histogram, want, rows);
    candidates.clear();
    for (size_t slot = begin; slot < end; ++slot) {
      const Score score = scores_[slot];
      if (score == 0 || size_t{score} >> kBucketShift > bucket) continue;
      const auto name = static_cast<uint32_t>(slot);
      if (!may_leave(name)) continue;
      candidates.push_back(uint64_t{score} << 32 | static_cast<uint32_t>(name - hand_));
    }
    if (candidates.size() >= count || bucket == kBuckets - 1) break;
    want = rows + count;  // some may not leave: another bucket at least
  }
  const size_t n = std::min(count, candidates.size());
  std::nth_element(candidates.begin(), candidates.begin() + static_cast<ptrdiff_t>(n),
                   candidates.end());
  candidates.resize(n);
  std::sort(candidates.begin(), candidates.end());
  const uint32_t hand = hand_;
  for (const uint64_t c : candidates) victims.push_back(static_cast<uint32_t>(c) + hand);
  if (n > 0) hand_ = victims.back() + 1;
}

}  // namespace strata::storage
