#include "worker/bsp/pull_answers.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>

namespace strata {
namespace {

using wire::PullOutcome;

Exchange::PullAnswer Answer(PullOutcome outcome, uint64_t clock) {
  return {{7, Generation(2), MapEpoch(3), Step(clock)}, outcome, {}};
}

TEST_CASE("a pull in parts says what one server of all their shards would say", "[bsp]") {
  // Each part is served, not yet, or too old at one of two clocks: all ways of up to four parts.
  const Exchange::PullAnswer answers[] = {
      Answer(PullOutcome::kServed, 4), Answer(PullOutcome::kNotYet, 3),
      Answer(PullOutcome::kTooOld, 8), Answer(PullOutcome::kTooOld, 9)};
  for (uint32_t parts = 1; parts <= 4; ++parts) {
    for (uint32_t way = 0; way < 1u << (2 * parts); ++way) {
      PullAnswers whole(parts);
      CHECK(whole.parts() == parts);
      uint32_t worst = 0;
      for (uint32_t p = 0; p < parts; ++p) {
        const uint32_t part = way >> (2 * p) & 3;
        worst = std::max(worst, part);
        const auto said = whole.OnAnswer(answers[part]);
        INFO(parts << " parts, way " << way << ", part " << p);
        REQUIRE(said.ok());
        REQUIRE(said->has_value() == (p + 1 == parts));
        if (!said->has_value()) continue;
        REQUIRE((*said)->outcome == answers[worst].outcome);
        if (worst >= 2) REQUIRE((*said)->state.clock == answers[worst].state.clock);
        REQUIRE((*said)->state.incarnation == 7);
      }
    }
  }
}

TEST_CASE("an outcome that no pull has is refused", "[bsp]") {
  CHECK(absl::IsDataLoss(PullAnswers(2).OnAnswer(Answer(PullOutcome::kUnspecified, 1)).status()));
}

}  // namespace
}  // namespace strata
