#include "storage/eviction/lfu_policy.h"

namespace strata::storage {
namespace {

class LfuPolicy final : public EvictionPolicy {
 public:
  explicit LfuPolicy(size_t capacity) : scores_(capacity) {}

  void OnInsert(uint32_t slot, Position) override { scores_.Set(slot, 1); }
  void OnHit(uint32_t slot) override {
    if (scores_.at(slot) == SlotScores::kMost) scores_.Halve();
    scores_.Set(slot, static_cast<SlotScores::Score>(scores_.at(slot) + 1));
  }
  void OnEvict(uint32_t slot, Position) override { scores_.Set(slot, 0); }
  void OnErase(uint32_t slot) override { scores_.Set(slot, 0); }

  void Choose(size_t count, const MayLeave& may_leave, std::vector<uint32_t>& victims) override {
    scores_.Choose(count, may_leave, victims);
  }

 private:
  SlotScores scores_;
};

}  // namespace

std::unique_ptr<EvictionPolicy> MakeLfuPolicy(size_t capacity) {
  return std::make_unique<LfuPolicy>(capacity);
}

}  // namespace strata::storage
