#include "storage/eviction_policy.h"

namespace strata::storage {
namespace {

// Each slot has a byte: empty, cold or warm. The hand goes round: a warm slot gets a second chance
// and turns cold, a cold one leaves.
class ClockPolicy final : public EvictionPolicy {
 public:
  explicit ClockPolicy(size_t capacity) : state_(capacity, kEmpty) {}

  size_t bytes_per_slot() const override { return EvictionBytesPerSlot(EvictionKind::kClock); }
  void OnInsert(uint32_t slot) override { state_[slot] = kWarm; }
  void OnHit(uint32_t slot) override { state_[slot] = kWarm; }
  void OnRemove(uint32_t slot) override { state_[slot] = kEmpty; }

  void Choose(size_t count, const std::function<bool(uint32_t)>& may_leave,
              std::vector<uint32_t>& victims) override {
    const size_t begin = victims.size();
    // The first round cools, so the second finds every slot cold.
    for (size_t steps = 2 * state_.size(); steps > 0 && count > 0; --steps) {
      const auto slot = static_cast<uint32_t>(hand_);
      hand_ = hand_ + 1 == state_.size() ? 0 : hand_ + 1;
      if (state_[slot] == kWarm) {
        state_[slot] = kCold;
      } else if (state_[slot] == kCold && may_leave(slot)) {
        state_[slot] = kChosen;
        victims.push_back(slot);
        --count;
      }
    }
    // A victim that stays after all (its write failed) is the first to be chosen again.
    for (size_t i = begin; i < victims.size(); ++i) state_[victims[i]] = kCold;
  }

 private:
  enum State : uint8_t { kEmpty, kCold, kWarm, kChosen };
  std::vector<State> state_;
  size_t hand_ = 0;
};

}  // namespace

std::unique_ptr<EvictionPolicy> MakeEvictionPolicy(EvictionKind kind, size_t capacity) {
  switch (kind) {
    case EvictionKind::kClock:
      return std::make_unique<ClockPolicy>(capacity);
  }
  return nullptr;
}

size_t EvictionBytesPerSlot(EvictionKind kind) {
  switch (kind) {
    case EvictionKind::kClock:
      return 1;
  }
  return 0;
}

}  // namespace strata::storage
