#include "tools/cli/cluster/restart_backoff.h"

#include <catch2/catch.hpp>

#include "absl/time/time.h"

namespace strata {
namespace {

RestartBackoff::Options Options() {
  return {absl::Milliseconds(200), absl::Seconds(10), absl::Seconds(30)};
}

TEST_CASE("pauses double up to the longest", "[supervisor]") {
  RestartBackoff backoff(Options());
  for (int expected : {200, 400, 800, 1600, 3200, 6400, 10000, 10000, 10000}) {
    CHECK(backoff.OnEnd(absl::Seconds(1)) == absl::Milliseconds(expected));
  }
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(backoff.OnEnd(absl::ZeroDuration()) == absl::Seconds(10));
  }
}

TEST_CASE("who lived long enough starts over", "[supervisor]") {
  RestartBackoff backoff(Options());
  for (int i = 0; i < 4; ++i) backoff.OnEnd(absl::ZeroDuration());
  CHECK(backoff.OnEnd(absl::Seconds(30) - absl::Nanoseconds(1)) == absl::Milliseconds(3200));
  CHECK(backoff.OnEnd(absl::Seconds(30)) == absl::Milliseconds(200));
  CHECK(backoff.OnEnd(absl::Seconds(1)) == absl::Milliseconds(400));
  CHECK(backoff.OnEnd(absl::Hours(9)) == absl::Milliseconds(200));
}

TEST_CASE("a first pause beyond the longest is cut", "[supervisor]") {
  RestartBackoff backoff({absl::Seconds(5), absl::Seconds(2), absl::Hours(1)});
  CHECK(backoff.OnEnd(absl::ZeroDuration()) == absl::Seconds(2));
  CHECK(backoff.OnEnd(absl::ZeroDuration()) == absl::Seconds(2));
}

}  // namespace
}  // namespace strata
