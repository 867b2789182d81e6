#include "proto/runtime/transport/grpc_deadline.h"

#include <catch2/catch.hpp>

#include "absl/time/time.h"

namespace strata {
namespace {

TEST_CASE("a deadline is one of the monotonic clock, as far off as was asked", "[grpc]") {
  const gpr_timespec before = gpr_now(GPR_CLOCK_MONOTONIC);
  const gpr_timespec deadline = GrpcDeadline(absl::Milliseconds(1500));
  const gpr_timespec after = gpr_now(GPR_CLOCK_MONOTONIC);
  REQUIRE(deadline.clock_type == GPR_CLOCK_MONOTONIC);
  const gpr_timespec wait = gpr_time_from_millis(1500, GPR_TIMESPAN);
  CHECK(gpr_time_cmp(deadline, gpr_time_add(before, wait)) >= 0);
  CHECK(gpr_time_cmp(deadline, gpr_time_add(after, wait)) <= 0);
  const absl::Duration left = TimeLeft(deadline);
  CHECK(left <= absl::Milliseconds(1500));
  CHECK(left > absl::ZeroDuration());
}

TEST_CASE("what is over has nothing left, and what has no end all of it", "[grpc]") {
  CHECK(TimeLeft(GrpcDeadline(absl::ZeroDuration())) == absl::ZeroDuration());
  CHECK(TimeLeft(GrpcDeadline(-absl::Hours(1))) == absl::ZeroDuration());
  CHECK(TimeLeft(GrpcDeadline(absl::InfiniteDuration())) == absl::InfiniteDuration());
  // Longer than gRPC can count.
  CHECK(TimeLeft(GrpcDeadline(absl::Hours(24 * 365 * 200))) > absl::Hours(24 * 365 * 199));
}

TEST_CASE("deadlines of gRPC's other clocks are understood", "[grpc]") {
  const gpr_timespec wall =
      gpr_time_add(gpr_now(GPR_CLOCK_REALTIME), gpr_time_from_seconds(60, GPR_TIMESPAN));
  CHECK(absl::AbsDuration(TimeLeft(wall) - absl::Seconds(60)) < absl::Seconds(5));
  CHECK(TimeLeft(gpr_inf_future(GPR_CLOCK_REALTIME)) == absl::InfiniteDuration());
}

}  // namespace
}  // namespace strata
