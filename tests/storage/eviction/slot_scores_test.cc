#include "storage/eviction/slot_scores.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "tests/seed.h"

namespace strata::storage {
namespace {

const auto kAny = [](uint32_t) { return true; };

std::vector<uint32_t> Chosen(SlotScores& scores, size_t count,
                             const EvictionPolicy::MayLeave& may_leave = kAny) {
  std::vector<uint32_t> victims;
  scores.Choose(count, may_leave, victims);
  return victims;
}

TEST_CASE("no row's score falls to that of an empty slot", "[storage][eviction]") {
  SlotScores scores(5);
  const uint16_t before[] = {1, 2, 40'000, 0, SlotScores::kMost};
  for (uint32_t s = 0; s < 5; ++s) scores.Set(s, before[s]);
  scores.Lower(40'000);
  const uint16_t lowered[] = {1, 1, 1, 0, SlotScores::kMost - 40'000};
  for (uint32_t s = 0; s < 5; ++s) CHECK(scores.at(s) == lowered[s]);
  scores.Set(1, 3);
  scores.Halve();
  const uint16_t halved[] = {1, 1, 1, 0, (SlotScores::kMost - 40'000) / 2};
  for (uint32_t s = 0; s < 5; ++s) CHECK(scores.at(s) == halved[s]);
  // All of them can still leave, the empty slot cannot.
  std::vector<uint32_t> all = Chosen(scores, 10);
  std::sort(all.begin(), all.end());
  CHECK(all == std::vector<uint32_t>{0, 1, 2, 4});
}

TEST_CASE("slots of one score take turns", "[storage][eviction]") {
  SlotScores scores(10);
  for (uint32_t s = 0; s < 10; ++s) scores.Set(s, 7);
  CHECK(Chosen(scores, 4) == std::vector<uint32_t>{0, 1, 2, 3});
  CHECK(Chosen(scores, 4) == std::vector<uint32_t>{4, 5, 6, 7});
  CHECK(Chosen(scores, 4) == std::vector<uint32_t>{8, 9, 0, 1});
  CHECK(Chosen(scores, 0).empty());
  CHECK(Chosen(scores, 1) == std::vector<uint32_t>{2});
}

// By sorting: lowest score first, equal ones from behind the last that was chosen.
TEST_CASE("the lowest scores leave, whichever may", "[storage][eviction][seeds]") {
  for (const uint64_t seed : Seeds("slot_scores", 1, 40)) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const auto slots = static_cast<uint32_t>(1 + random() % 300);
    SlotScores scores(slots);
    // Neighbouring scores share a bucket of the count; some are far apart.
    const uint32_t range = random() % 2 == 0 ? 20 : 65'536;
    uint32_t hand = 0;
    for (int round = 0; round < 20; ++round) {
      for (uint32_t s = 0; s < slots; ++s) {
        if (random() % 2 == 0) scores.Set(s, static_cast<uint16_t>(random() % range));
      }
      const uint64_t pinned = random() % 4;  // of 4
      std::vector<bool> may(slots);
      for (uint32_t s = 0; s < slots; ++s) may[s] = random() % 4 >= pinned;
      std::vector<std::pair<uint32_t, uint32_t>> order;  // score, slot from the hand on
      for (uint32_t s = 0; s < slots; ++s) {
        if (scores.at(s) != 0 && may[s]) order.emplace_back(scores.at(s), s - hand);
      }
      std::sort(order.begin(), order.end());
      order.resize(std::min<size_t>(order.size(), random() % (slots + 2)));
      std::vector<uint32_t> expected;
      for (const auto& [score, from] : order) expected.push_back(from + hand);
      const auto found = Chosen(scores, order.size(), [&](uint32_t s) { return may[s]; });
      REQUIRE(found == expected);
      if (!found.empty()) hand = found.back() + 1;
    }
  }
}

}  // namespace
}  // namespace strata::storage
