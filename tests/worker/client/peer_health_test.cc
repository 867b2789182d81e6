// Which servers a worker says that it cannot reach.
#include "worker/client/peer_health.h"

#include <catch2/catch.hpp>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace strata {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

TEST_CASE("a server is silent from the first call that had no answer to the next that has one",
          "[peer_health]") {
  PeerHealth health;
  health.OnCall(0, absl::OkStatus(), kStart);
  health.OnCall(1, absl::UnavailableError("refused"), kStart);
  health.OnCall(1, absl::DeadlineExceededError("late"), kStart + absl::Seconds(5));
  REQUIRE(health.silent().size() == 1);
  CHECK(health.silent()[0].server == 1);
  CHECK(health.silent()[0].since == kStart);
  CHECK(health.silent()[0].why.message() == "late");
  health.OnCall(1, absl::OkStatus(), kStart + absl::Seconds(6));
  CHECK(health.silent().empty());
}

TEST_CASE("a refusal is an answer, and a call that was given up says nothing", "[peer_health]") {
  PeerHealth health;
  health.OnCall(0, absl::UnavailableError("refused"), kStart);
  health.OnCall(0, absl::CancelledError("stopped"), kStart);
  CHECK(health.silent().size() == 1);
  health.OnCall(0, absl::FailedPreconditionError("another map epoch"), kStart);
  CHECK(health.silent().empty());
}

TEST_CASE("another address is another start", "[peer_health]") {
  PeerHealth health;
  health.OnCall(0, absl::UnavailableError("refused"), kStart);
  health.Forget(0);
  CHECK(health.silent().empty());
}

}  // namespace
}  // namespace strata
