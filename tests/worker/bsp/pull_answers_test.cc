#include "worker/bsp/pull_answers.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

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
      PullAnswers pull(parts);
      uint32_t worst = 0;
      for (uint32_t p = 0; p < parts; ++p) {
        const uint32_t part = way >> (2 * p) & 3;
        worst = std::max(worst, part);
        INFO(parts << " parts, way " << way << ", part " << p);
        REQUIRE_FALSE(pull.whole().has_value());
        REQUIRE(pull.OnPart(answers[part]).ok());
      }
      const auto whole = pull.whole();
      INFO(parts << " parts, way " << way);
      REQUIRE(whole.has_value());
      REQUIRE(whole->ok());
      REQUIRE((*whole)->outcome == answers[worst].outcome);
      if (worst >= 2) REQUIRE((*whole)->state.clock == answers[worst].state.clock);
      REQUIRE((*whole)->state.incarnation == 7);
    }
  }
}

TEST_CASE("a pull broke when all parts are through and one of them broke", "[bsp]") {
  const absl::Status no_outcome = PullAnswers(1).OnPart(Answer(PullOutcome::kUnspecified, 1));
  CHECK(absl::IsDataLoss(no_outcome));
  // Each part is answered, or breaks in one of three ways: all ways of up to four parts.
  struct Kind {
    absl::StatusOr<Exchange::PullAnswer> part;
    absl::Status status;
  };
  const Kind kinds[] = {
      {Answer(PullOutcome::kServed, 4), absl::OkStatus()},
      {Answer(PullOutcome::kNotYet, 3), absl::OkStatus()},
      {Answer(PullOutcome::kTooOld, 8), absl::OkStatus()},
      {absl::UnavailableError("away"), absl::UnavailableError("away")},
      {absl::ResourceExhaustedError("busy"), absl::ResourceExhaustedError("busy")},
      {Answer(PullOutcome::kUnspecified, 4), no_outcome},
  };
  constexpr uint32_t kKinds = 6;
  uint32_t ways = 1;
  for (uint32_t parts = 1; parts <= 4; ++parts) {
    ways *= kKinds;
    for (uint32_t way = 0; way < ways; ++way) {
      PullAnswers pull(parts);
      absl::Status first;
      for (uint32_t p = 0, rest = way; p < parts; ++p, rest /= kKinds) {
        const Kind& kind = kinds[rest % kKinds];
        INFO(parts << " parts, way " << way << ", part " << p);
        REQUIRE_FALSE(pull.whole().has_value());
        REQUIRE(pull.OnPart(kind.part) == kind.status);
        if (first.ok()) first = kind.status;
      }
      const auto whole = pull.whole();
      INFO(parts << " parts, way " << way);
      REQUIRE(whole.has_value());
      REQUIRE(whole->status() == first);
    }
  }
}

}  // namespace
}  // namespace strata
