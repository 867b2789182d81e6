#include "absl/time/clock.h"

#include <catch2/catch.hpp>

#include "proto/runtime/base/clock.h"
#include "proto/runtime/base/manual_clock.h"

namespace strata {
namespace {

TEST_CASE("the real clock never goes back and shows the time of day", "[clock]") {
  Clock* const clock = Clock::Real();
  absl::Time last = clock->Now();
  CHECK(absl::AbsDuration(absl::Now() - last) < absl::Seconds(5));
  for (int i = 0; i < 10'000; ++i) {
    const absl::Time now = clock->Now();
    REQUIRE(now >= last);
    last = now;
  }
  CHECK(Clock::Real() == clock);
  // Nobody sets the wall clock here: what it shows are the same times.
  CHECK(clock->Wall(last) == last);
}

TEST_CASE("a manual clock moves by hand alone", "[clock]") {
  ManualClock clock;
  const absl::Time start = clock.Now();
  CHECK(absl::FormatTime("%Y-%m-%d", start, absl::UTCTimeZone()) == "2026-01-01");
  CHECK(clock.Now() == start);
  clock.Advance(absl::Milliseconds(1500));
  CHECK(clock.Now() - start == absl::Milliseconds(1500));
}

}  // namespace
}  // namespace strata
