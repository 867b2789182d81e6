// What gRPC waits with goes by the monotonic clock, whatever of this folder a program has gRPC by.
// Built for each: with it alone, the replacement of Abseil's waits must come along.
#include <grpc/support/sync.h>
#include <grpc/support/time.h>

#include <catch2/catch.hpp>

#include "tests/proto/runtime/base/timed_waits.h"

namespace strata {
namespace {

TEST_CASE("gRPC waits for a time by the monotonic clock", "[grpc]") {
  const testing::TimedWaits before = testing::TimedWaitsSoFar();
  gpr_mu mu;
  gpr_cv never;
  gpr_mu_init(&mu);
  gpr_cv_init(&never);
  gpr_mu_lock(&mu);
  const gpr_timespec soon =
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(5, GPR_TIMESPAN));
  gpr_cv_wait(&never, &mu, soon);
  gpr_mu_unlock(&mu);
  gpr_cv_destroy(&never);
  gpr_mu_destroy(&mu);
  const testing::TimedWaits after = testing::TimedWaitsSoFar();
  CHECK(after.monotonic > before.monotonic);
  CHECK(after.wall == before.wall);
}

}  // namespace
}  // namespace strata
