#include "storage/eviction/lrfu_policy.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "proto/core/position.h"
#include "storage/eviction/lrfu_score.h"

namespace strata::storage {
namespace {

using Score = SlotScores::Score;

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
        gains_(LrfuGainTable()),
        references_per_unit_(LrfuReferencesPerUnit(capacity)) {}

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
  Score Sum(Score a, Score b) const { return LrfuSum(a, b, gains_.data()); }

  // Time goes on by one reference.
  void Pass() {
    if (++references_ < references_per_unit_) return;
    references_ = 0;
    if (++now_ < kLrfuMostTime) return;
    const auto by = static_cast<Score>(now_ / 2);
    scores_.Lower(by);
    ghosts_.Lower(by);
    now_ = static_cast<Score>(now_ - by);
  }

  SlotScores scores_;
  Ghosts ghosts_;
  const LrfuGains& gains_;
  const size_t references_per_unit_;
  size_t references_ = 0;  // of this unit
  Score now_ = 1;
};

}  // namespace

std::unique_ptr<EvictionPolicy> MakeLrfuPolicy(size_t capacity) {
  return std::make_unique<LrfuPolicy>(capacity);
}

}  // namespace strata::storage
