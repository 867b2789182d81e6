// What every eviction policy does, held against a plain account of slots.
#include "storage/eviction/policy.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "storage/eviction/kind.h"
#include "tests/seed.h"

namespace strata::storage {
namespace {

TEST_CASE("policies have names", "[storage][eviction]") {
  CHECK(EvictionKindOf("lru") == EvictionKind::kLru);
  CHECK(EvictionKindOf("lfu") == EvictionKind::kLfu);
  CHECK(EvictionKindOf("lrfu") == EvictionKind::kLrfu);
  CHECK_FALSE(EvictionKindOf("clock").has_value());
  CHECK_FALSE(EvictionKindOf("").has_value());
}

TEST_CASE("a policy names rows that are there and may leave, each once",
          "[storage][eviction][seeds]") {
  const uint64_t given = GENERATE(from_range(Seeds("eviction_policies", 7)));
  for (const EvictionKind kind : {EvictionKind::kLru, EvictionKind::kLfu, EvictionKind::kLrfu}) {
    for (const size_t capacity : {size_t{1}, size_t{16}, size_t{1000}}) {
      const uint64_t seed = given + capacity;
      INFO("kind " << static_cast<int>(kind) << ", capacity " << capacity << ", seed " << given);
      std::mt19937_64 random(seed);
      auto policy = MakeEvictionPolicy(kind, capacity);
      std::vector<uint64_t> row(capacity, 0);  // 0: empty
      std::set<uint32_t> pinned;
      bool right = true;
      for (int i = 0; i < 30'000; ++i) {
        const auto slot = static_cast<uint32_t>(random() % capacity);
        const uint64_t dice = random() % 100;
        if (row[slot] == 0) {
          row[slot] = 1 + random() % (3 * capacity);
          policy->OnInsert(slot, Position(row[slot]));
        } else if (dice < 50) {
          policy->OnHit(slot);
        } else if (dice < 55) {
          policy->OnErase(slot);
          row[slot] = 0;
          pinned.erase(slot);
        } else if (dice < 60) {
          policy->OnEvict(slot, Position(row[slot]));
          row[slot] = 0;
          pinned.erase(slot);
        } else if (dice < 70) {
          if (!pinned.erase(slot)) pinned.insert(slot);
        } else if (dice < 71) {
          size_t may = 0;
          for (uint32_t s = 0; s < capacity; ++s) may += row[s] != 0 && !pinned.contains(s);
          const size_t count = random() % (2 * capacity + 1);
          std::vector<uint32_t> victims = {~0u};
          policy->Choose(
              count, [&](uint32_t s) { return !pinned.contains(s); }, victims);
          const std::set<uint32_t> distinct(victims.begin() + 1, victims.end());
          right &= victims[0] == ~0u && victims.size() == 1 + std::min(may, count);
          right &= distinct.size() + 1 == victims.size();
          for (const uint32_t s : distinct) right &= row[s] != 0 && !pinned.contains(s);
          for (size_t v = 1; v < victims.size() && random() % 4 != 0; ++v) {
            policy->OnEvict(victims[v], Position(row[victims[v]]));
            row[victims[v]] = 0;
          }
        }
      }
      REQUIRE(right);
    }
  }
}

// Of several regions (storage/eviction/slot_scores.h): each gives its own lowest, and together they
// give all.
TEST_CASE("a large tier is looked through by regions", "[storage][eviction]") {
  constexpr uint32_t kSlots = 1'100'000;
  auto policy = MakeEvictionPolicy(EvictionKind::kLfu, kSlots);
  // Every tenth slot once referenced, the others twice.
  for (uint32_t s = 0; s < kSlots; ++s) {
    policy->OnInsert(s, Position(s));
    if (s % 10 != 0) policy->OnHit(s);
  }
  const auto any = [](uint32_t) { return true; };
  std::vector<uint32_t> victims;
  bool right = true;
  for (int round = 0; round < 8; ++round) {
    victims.clear();
    policy->Choose(10'000, any, victims);
    right &= victims.size() == 10'000;
    for (const uint32_t s : victims) {
      right &= s % 10 == 0;
      policy->OnEvict(s, Position(s));
    }
  }
  CHECK(right);
  // What one region does not have, all together do.
  victims.clear();
  policy->Choose(
      16'000, [](uint32_t s) { return s < 20'000; }, victims);
  CHECK(victims.size() == 16'000);
  victims.clear();
  policy->Choose(2 * kSlots, any, victims);
  CHECK(victims.size() == kSlots - 80'000);
}

}  // namespace
}  // namespace strata::storage
