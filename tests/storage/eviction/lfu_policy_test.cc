#include "storage/eviction/lfu_policy.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "tests/seed.h"

namespace strata::storage {
namespace {

const auto kAny = [](uint32_t) { return true; };

TEST_CASE("lfu lets go of what was referenced least", "[storage][eviction][seeds]") {
  constexpr size_t kSlots = 100;
  const uint64_t seed = GENERATE(from_range(Seeds("lfu", 5)));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  auto policy = MakeLfuPolicy(kSlots);
  std::vector<uint64_t> count(kSlots, 1);
  for (uint32_t s = 0; s < kSlots; ++s) policy->OnInsert(s, Position(s));
  bool right = true;
  for (int i = 0; i < 20'000; ++i) {
    const auto slot = static_cast<uint32_t>(random() % (1 + random() % kSlots));
    policy->OnHit(slot);
    ++count[slot];
    if (i % 20 == 0) {
      policy->OnErase(slot);
      policy->OnInsert(slot, Position(slot));
      count[slot] = 1;
    }
    if (i % 50 != 0) continue;
    std::vector<uint32_t> victims;
    policy->Choose(30, kAny, victims);
    std::vector<bool> chosen(kSlots, false);
    uint64_t most = 0;
    for (const uint32_t s : victims) {
      chosen[s] = true;
      right &= count[s] >= most;  // the least first
      most = count[s];
    }
    for (uint32_t s = 0; s < kSlots; ++s) right &= chosen[s] || count[s] >= most;
    right &= victims.size() == 30;
  }
  CHECK(right);
}

TEST_CASE("lfu halves its counts when one is full", "[storage][eviction]") {
  auto policy = MakeLfuPolicy(3);
  for (uint32_t s = 0; s < 3; ++s) policy->OnInsert(s, Position(s));
  for (int i = 0; i < 200'000; ++i) policy->OnHit(2);
  for (int i = 0; i < 10; ++i) policy->OnHit(0);
  std::vector<uint32_t> victims;
  policy->Choose(3, kAny, victims);
  CHECK(victims == std::vector<uint32_t>{1, 0, 2});
}

}  // namespace
}  // namespace strata::storage
