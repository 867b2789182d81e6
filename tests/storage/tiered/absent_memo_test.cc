#include "storage/tiered/absent_memo.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <set>

#include "tests/seed.h"

namespace strata::storage {
namespace {

TEST_CASE("what is held was added and not removed since", "[storage][tiered][seeds]") {
  const uint64_t seed = GENERATE(from_range(Seeds("absent_memo", 0)));
  CAPTURE(seed);
  for (const size_t capacity : {size_t{0}, size_t{1}, size_t{100}, size_t{1} << 20}) {
    std::mt19937_64 random(seed + capacity);
    AbsentMemo memo(capacity);
    std::set<uint64_t> added;
    bool right = true;
    uint64_t held = 0;
    for (int i = 0; i < 100'000; ++i) {
      const uint64_t pool[] = {random() % 300, ~0ull - random() % 3, random() % 3 << 62};
      const Position position(pool[random() % 3]);
      held += memo.Holds(position);
      right &= !memo.Holds(position) || added.contains(position.value);
      if (random() % 2 == 0) {
        memo.Add(position);
        added.insert(position.value);
        right &= memo.Holds(position) == (position.value != ~0ull);
      } else if (random() % 4 == 0) {
        memo.Remove(position);
        added.erase(position.value);
        right &= !memo.Holds(position);
      }
    }
    CHECK(right);
    CHECK(held > 0);
  }
}

TEST_CASE("half of its capacity is remembered, but for one in a hundred", "[storage][tiered]") {
  constexpr uint64_t kCapacity = 1 << 16;
  std::mt19937_64 random(1);
  AbsentMemo memo(kCapacity);
  std::set<uint64_t> added;
  while (added.size() < kCapacity / 2) added.insert(random() >> 1);
  for (const uint64_t position : added) memo.Add(Position(position));
  uint64_t held = 0;
  for (const uint64_t position : added) held += memo.Holds(Position(position));
  INFO(held << " of " << added.size());
  CHECK(held > added.size() / 100 * 99);
}

}  // namespace
}  // namespace strata::storage
