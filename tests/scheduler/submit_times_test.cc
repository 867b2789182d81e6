#include "scheduler/submit_times.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "absl/time/time.h"

namespace strata::scheduler {
namespace {

constexpr absl::Duration kLease = absl::Seconds(10);
const absl::Time kBegin = absl::FromUnixSeconds(1767225600);

TEST_CASE("a submission that waits for all that it may leaves time for its look",
          "[submit_times]") {
  const int seconds = GENERATE(1, 7, 26, 30);
  CAPTURE(seconds);
  const absl::Time deadline = kBegin + absl::Seconds(seconds);
  const absl::Time waited = AwaitEndedUntil(kBegin, deadline, kLease);
  const absl::Time asked = AskForLockUntil(waited, deadline, kLease);
  CHECK(waited - kBegin == std::min(absl::Seconds(seconds) / 2, kLease));
  CHECK(asked > waited);
  CHECK(asked - waited <= 2 * kLease / 3);
  CHECK(deadline - asked >= absl::Seconds(seconds) / 4);
}

TEST_CASE("a submission with much time waits a lease, and asks for two thirds of one",
          "[submit_times]") {
  const absl::Time deadline = GENERATE(kBegin + absl::Minutes(5), absl::InfiniteFuture());
  CHECK(AwaitEndedUntil(kBegin, deadline, kLease) == kBegin + kLease);
  CHECK(AskForLockUntil(kBegin, deadline, kLease) == kBegin + 2 * kLease / 3);
}

TEST_CASE("a submission whose time is over waits no more", "[submit_times]") {
  const absl::Time deadline = kBegin - absl::Seconds(GENERATE(0, 3));
  CHECK(AwaitEndedUntil(kBegin, deadline, kLease) <= kBegin);
  CHECK(AskForLockUntil(kBegin, deadline, kLease) <= kBegin);
}

}  // namespace
}  // namespace strata::scheduler
