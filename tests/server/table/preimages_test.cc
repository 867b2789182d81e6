#include "server/table/preimages.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "tests/seed.h"

namespace strata::server {
namespace {

TEST_CASE("ascending look-ups find exactly what is there", "[preimages][seeds]") {
  for (const uint64_t seed : Seeds("preimages", 0, 200)) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    std::map<Position, float> there;
    for (uint64_t i = random() % 50; i > 0; --i) {
      there[Position(random() % 100)] = static_cast<float>(i);
    }
    std::vector<Position> positions;
    for (const auto& [p, v] : there) positions.push_back(p);
    PreImages images(2);
    const size_t half = positions.size() / 2;
    const std::span<const Position> all(positions);
    for (const auto part : {all.subspan(0, half), all.subspan(half)}) {
      float* out = images.Extend(part);
      for (size_t i = 0; i < part.size(); ++i) {
        out[2 * i] = there[part[i]];
        out[2 * i + 1] = -there[part[i]];
      }
    }
    PreImages::Cursor cursor(images);
    for (uint64_t p = random() % 3; p < 110; p += 1 + random() % 4) {
      const float* found = cursor.Find(Position(p));
      const auto want = there.find(Position(p));
      REQUIRE((found != nullptr) == (want != there.end()));
      if (found == nullptr) continue;
      REQUIRE(found[0] == want->second);
      REQUIRE(found[1] == -want->second);
    }
    images.Clear();
    REQUIRE(PreImages::Cursor(images).Find(Position(5)) == nullptr);
  }
}

}  // namespace
}  // namespace strata::server
