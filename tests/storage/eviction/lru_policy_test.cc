#include "storage/eviction/lru_policy.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <list>
#include <memory>
#include <random>
#include <vector>

#include "tests/seed.h"

namespace strata::storage {
namespace {

const auto kAny = [](uint32_t) { return true; };

// Up to 256 slots time passes with every reference, so that the order is exact; the run is long
// enough for the scores to be lowered several times.
TEST_CASE("lru is a list by last reference", "[storage][eviction][seeds]") {
  constexpr size_t kSlots = 40;
  const uint64_t seed = GENERATE(from_range(Seeds("lru", 3)));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  auto policy = MakeLruPolicy(kSlots);
  std::list<uint32_t> order;  // the longest unused first
  for (uint32_t s = 0; s < kSlots; ++s) {
    policy->OnInsert(s, Position(s));
    order.push_back(s);
  }
  bool right = true;
  for (int i = 0; i < 150'000; ++i) {
    const auto slot = static_cast<uint32_t>(random() % kSlots);
    policy->OnHit(slot);
    order.remove(slot);
    order.push_back(slot);
    if (i % 50 != 0) continue;
    std::vector<uint32_t> victims;
    policy->Choose(kSlots / 2, kAny, victims);
    right &= std::equal(victims.begin(), victims.end(), order.begin());
    right &= victims.size() == kSlots / 2;
  }
  CHECK(right);
}

TEST_CASE("lru goes by last reference to within a 256th of the tier", "[storage][eviction]") {
  constexpr uint32_t kSlots = 25'600;
  auto policy = MakeLruPolicy(kSlots);
  for (uint32_t s = 0; s < kSlots; ++s) policy->OnInsert(s, Position(s));
  std::vector<uint32_t> victims;
  policy->Choose(kSlots / 4, kAny, victims);
  bool right = victims.size() == kSlots / 4;
  for (const uint32_t s : victims) right &= s < kSlots / 4 + kSlots / 256;
  CHECK(right);
}

}  // namespace
}  // namespace strata::storage
