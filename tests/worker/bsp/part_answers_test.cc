#include "worker/bsp/part_answers.h"

#include <catch2/catch.hpp>
#include <cstdint>

namespace strata {
namespace {

using Whole = PartAnswers::Whole;

TEST_CASE("a push is where its parts are, if all are in one process", "[bsp]") {
  // Each part's answer comes from one of three identities: all ways of up to four parts.
  const ServerIdentity identities[] = {{7, 3}, {8, 3}, {7, 4}};
  for (uint32_t parts = 1; parts <= 4; ++parts) {
    uint32_t ways = 1;
    for (uint32_t p = 0; p < parts; ++p) ways *= 3;
    for (uint32_t way = 0; way < ways; ++way) {
      PartAnswers answers(parts);
      bool same = true;
      uint32_t rest = way;
      for (uint32_t p = 0; p < parts; ++p, rest /= 3) {
        same = same && rest % 3 == way % 3;
        const Whole whole = answers.OnAccepted(identities[rest % 3]);
        INFO(parts << " parts, way " << way << ", part " << p);
        if (p + 1 < parts) {
          REQUIRE(whole == Whole::kOpen);
        } else {
          REQUIRE(whole == (same ? Whole::kAccepted : Whole::kMixed));
        }
      }
    }
  }
}

}  // namespace
}  // namespace strata
