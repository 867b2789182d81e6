#include "storage/eviction/lrfu_policy.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "storage/eviction/lrfu_score.h"

namespace strata::storage {
namespace {

const auto kAny = [](uint32_t) { return true; };

// The definition: the sum over a row's references of 2^-(references since / half-life).
class Account {
 public:
  explicit Account(size_t slots) : half_life_(static_cast<double>(slots * kLrfuHalfLife)) {
    value_.assign(slots, 0);
    since_.assign(slots, 0);
  }
  void Refer(uint32_t slot) {
    ++now_;
    value_[slot] = At(slot) + 1;
    since_[slot] = now_;
  }
  double At(uint32_t slot) const {
    return value_[slot] * std::exp2(-static_cast<double>(now_ - since_[slot]) / half_life_);
  }

 private:
  const double half_life_;
  uint64_t now_ = 0;
  std::vector<double> value_;
  std::vector<uint64_t> since_;
};

// Rounding of logarithms to a 256th adds up to a few per cent; the run lowers the scores several
// times.
TEST_CASE("lrfu goes by the decayed number of references", "[storage][eviction]") {
  constexpr size_t kSlots = 64;
  std::mt19937_64 random(11);
  auto policy = MakeLrfuPolicy(kSlots);
  Account account(kSlots);
  for (uint32_t s = 0; s < kSlots; ++s) {
    policy->OnInsert(s, Position(s));
    account.Refer(s);
  }
  bool right = true;
  for (int i = 0; i < 600'000; ++i) {
    // Which slots are popular changes.
    const auto slot =
        static_cast<uint32_t>((random() % (1 + random() % kSlots) + i / 30'000 * 7) % kSlots);
    policy->OnHit(slot);
    account.Refer(slot);
    if (i % 1000 != 0) continue;
    std::vector<uint32_t> victims;
    policy->Choose(kSlots / 2, kAny, victims);
    right &= victims.size() == kSlots / 2;
    std::vector<bool> chosen(kSlots, false);
    double most = 0;
    for (const uint32_t s : victims) {
      chosen[s] = true;
      most = std::max(most, account.At(s));
    }
    for (uint32_t s = 0; s < kSlots; ++s) right &= chosen[s] || account.At(s) >= .9 * most;
  }
  CHECK(right);
}

TEST_CASE("a scan displaces nothing that is in use", "[storage][eviction]") {
  constexpr uint32_t kSlots = 1024;
  auto policy = MakeLrfuPolicy(kSlots);
  for (uint32_t s = 0; s < kSlots; ++s) policy->OnInsert(s, Position(s));
  for (uint32_t s = 0; s < kSlots / 2; ++s) policy->OnHit(s);
  bool right = true;
  uint64_t next = 1'000'000;
  for (int round = 0; round < 100; ++round) {  // a scan of six times the tier
    std::vector<uint32_t> victims;
    policy->Choose(kSlots / 16, kAny, victims);
    for (const uint32_t s : victims) {
      right &= s >= kSlots / 2;
      policy->OnEvict(s, Position(s));
      policy->OnInsert(s, Position(next++));
    }
  }
  CHECK(right);
}

TEST_CASE("a row that comes back goes on from where it was", "[storage][eviction]") {
  constexpr uint32_t kSlots = 256;
  auto policy = MakeLrfuPolicy(kSlots);
  for (uint32_t s = 0; s < kSlots; ++s) {
    policy->OnInsert(s, Position(s));
    policy->OnHit(s);
  }
  for (int i = 0; i < 8; ++i) policy->OnHit(5);
  policy->OnEvict(5, Position(5));
  policy->OnInsert(5, Position(5));  // ten references once, now eleven
  policy->OnErase(6);                // leaves no ghost: one reference only
  policy->OnInsert(6, Position(6));
  std::vector<uint32_t> victims;
  policy->Choose(kSlots, kAny, victims);
  REQUIRE(victims.size() == kSlots);
  CHECK(victims.front() == 6);
  CHECK(victims.back() == 5);
}

// Time is a number of 16 bits, which is taken back now and then, and with it what ghosts remember.
TEST_CASE("a row that comes back late is worth no more than its references",
          "[storage][eviction]") {
  constexpr uint32_t kSlots = 16;
  // Half-lives since the row left; at 256 units each, time is taken back after 244 of them.
  for (const uint64_t half_lives : {4u, 100u, 250u, 400u}) {
    INFO(half_lives << " half-lives");
    auto policy = MakeLrfuPolicy(kSlots);
    // Late in the first stretch of time, where a ghost's score is high.
    uint64_t references = 0;
    const auto pass = [&](uint64_t n) {
      for (uint64_t i = 0; i < n; ++i) policy->OnHit(static_cast<uint32_t>(1 + references++ % 15));
    };
    for (uint32_t s = 0; s < kSlots; ++s) policy->OnInsert(s, Position(s));
    pass(240 * kLrfuHalfLife * kSlots);
    for (int i = 0; i < 3; ++i) policy->OnHit(0);
    policy->OnEvict(0, Position(0));
    pass(half_lives * kLrfuHalfLife * kSlots);
    // Its three references are a fifth of one by now, or less; the others are used all the time.
    policy->OnInsert(0, Position(0));
    std::vector<uint32_t> victims;
    policy->Choose(1, kAny, victims);
    CHECK(victims == std::vector<uint32_t>{0});
  }
}

}  // namespace
}  // namespace strata::storage
