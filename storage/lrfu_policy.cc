#include "storage/lrfu_policy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "proto/core/position.h"

namespace strata::storage {
namespace {

using Score = SlotScores::Score;

// A score is 1 + kUnit * log2(value) in forward time: a reference is worth one unit more for every
// kLrfuHalfLife / kUnit times the tier's rows references that came before it.
constexpr uint32_t kUnit = 256;
// Scores that differ by more add nothing to each other: log2(1 + 2^-10) is less than half a unit.
constexpr uint32_t kFar = 10 * kUnit;

// What the larger of two scores gains when the values are added, by their distance.
const std::array<uint16_t, kFar>& Gains() {
  static const auto gains = [] {
    std::array<uint16_t, kFar> out;
    for (uint32_t d = 0; d < kFar; ++d) {
      const double ratio = std::exp2(-static_cast<double>(d) / kUnit);
      out[d] = static_cast<uint16_t>(std::lround(kUnit * std::log2(1 + ratio)));
    }
    return out;
  }();
  return gains;
}

// Scores of rows that left. Sets of kWays, so that a look-up is one cache line; in a full set the
// lowest score gives way.
class Ghosts {
 public:
  explicit Ghosts(size_t capacity) : sets_(capacity / kWays) {}

  void Add(Position position, Score score) {
    if (sets_.empty()) return;
    const uint64_t hash = Mix64(position.value);
    Set& set = SetOf(hash);
    Ghost* const lowest = std::min_element(
        set.begin(), set.end(), [](const Ghost& a, const Ghost& b) { return a.score < b.score; });
    if (lowest->score <= score) *lowest = {FingerprintOf(hash), score};
  }

  // 0: there is none.
  Score Take(Position position) {
    if (sets_.empty()) return 0;
    const uint64_t hash = Mix64(position.value);
    for (Ghost& ghost : SetOf(hash)) {
      if (ghost.score == 0 || ghost.fingerprint != FingerprintOf(hash)) continue;
      return std::exchange(ghost, {}).score;
    }
    return 0;
  }

  void Lower(Score by) {
    for (Set& set : sets_) {
      for (Ghost& ghost : set) {
        ghost.score = static_cast<Score>(ghost.score > by ? ghost.score - by : 0);
      }
    }
  }

 private:
  static constexpr size_t kWays = 8;
  struct Ghost {
    uint16_t fingerprint = 0;
    Score score = 0;  // 0: free
  };
  static_assert(sizeof(Ghost) + SlotScores::kBytesPerSlot == kLrfuBytesPerSlot);
  using Set = std::array<Ghost, kWays>;

  static uint16_t FingerprintOf(uint64_t hash) { return static_cast<uint16_t>(hash); }
  Set& SetOf(uint64_t hash) {
    return sets_[static_cast<size_t>((static_cast<unsigned __int128>(hash) * sets_.size()) >> 64)];
  }

  std::vector<Set> sets_;
};

class LrfuPolicy final : public EvictionPolicy {
 public:
  explicit LrfuPolicy(size_t capacity)
      : scores_(capacity),
        ghosts_(capacity),
        gains_(Gains()),
        references_per_unit_(std::max<size_t>(1, capacity * kLrfuHalfLife / kUnit)) {}

  void OnInsert(uint32_t slot, Position position) override {
    Pass();
    const Score ghost = ghosts_.Take(position);
    scores_.Set(slot, ghost == 0 ? now_ : Sum(ghost, now_));
  }
  void OnHit(uint32_t slot) override {
    Pass();
    scores_.Set(slot, Sum(scores_.at(slot), now_));
  }
  void OnEvict(uint32_t slot, Position position) override {
    ghosts_.Add(position, scores_.at(slot));
    scores_.Set(slot, 0);
  }
  void OnErase(uint32_t slot) override { scores_.Set(slot, 0); }

  void Choose(size_t count, const MayLeave& may_leave, std::vector<uint32_t>& victims) override {
    scores_.Choose(count, may_leave, victims);
  }

 private:
  Score Sum(Score a, Score b) const {
    const uint32_t high = std::max(a, b);
    const uint32_t distance = high - std::min(a, b);
    return static_cast<Score>(distance < kFar ? high + gains_[distance] : high);
  }

  // Time goes on by one reference. No score is more than kFar + kUnit above now_.
  void Pass() {
    if (++references_ < references_per_unit_) return;
    references_ = 0;
    if (++now_ < SlotScores::kMost - kFar - kUnit) return;
    const auto by = static_cast<Score>(now_ / 2);
    scores_.Lower(by);
    ghosts_.Lower(by);
    now_ = static_cast<Score>(now_ - by);
  }

  SlotScores scores_;
  Ghosts ghosts_;
  const std::array<uint16_t, kFar>& gains_;
  const size_t references_per_unit_;
  size_t references_ = 0;  // of this unit
  Score now_ = 1;
};

}  // namespace

std::unique_ptr<EvictionPolicy> MakeLrfuPolicy(size_t capacity) {
  return std::make_unique<LrfuPolicy>(capacity);
}

}  // namespace strata::storage
