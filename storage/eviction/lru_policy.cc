#include "storage/eviction/lru_policy.h"

#include <algorithm>

namespace strata::storage {
namespace {

class LruPolicy final : public EvictionPolicy {
 public:
  explicit LruPolicy(size_t capacity)
      : scores_(capacity), references_per_tick_(std::max<size_t>(1, capacity / 256)) {}

  void OnInsert(uint32_t slot, Position) override { OnHit(slot); }
  void OnHit(uint32_t slot) override {
    scores_.Set(slot, now_);
    if (++references_ < references_per_tick_) return;
    references_ = 0;
    if (++now_ < SlotScores::kMost) return;
    constexpr SlotScores::Score kHalf = SlotScores::kMost / 2;
    scores_.Lower(kHalf);
    now_ -= kHalf;
  }
  void OnEvict(uint32_t slot, Position) override { scores_.Set(slot, 0); }
  void OnErase(uint32_t slot) override { scores_.Set(slot, 0); }

  void Choose(size_t count, const MayLeave& may_leave, std::vector<uint32_t>& victims) override {
    scores_.Choose(count, may_leave, victims);
  }

 private:
  SlotScores scores_;
  const size_t references_per_tick_;
  size_t references_ = 0;  // of this tick
  SlotScores::Score now_ = 1;
};

}  // namespace

std::unique_ptr<EvictionPolicy> MakeLruPolicy(size_t capacity) {
  return std::make_unique<LruPolicy>(capacity);
}

}  // namespace strata::storage
