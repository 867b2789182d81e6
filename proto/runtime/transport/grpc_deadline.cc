#include "proto/runtime/transport/grpc_deadline.h"

#include <algorithm>

namespace strata {

gpr_timespec GrpcDeadline(absl::Duration timeout) {
  if (timeout == absl::InfiniteDuration()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(absl::ToInt64Nanoseconds(timeout), GPR_TIMESPAN));
}

absl::Duration TimeLeft(gpr_timespec deadline) {
  const gpr_timespec monotonic = gpr_convert_clock_type(deadline, GPR_CLOCK_MONOTONIC);
  if (gpr_time_cmp(monotonic, gpr_inf_future(GPR_CLOCK_MONOTONIC)) == 0) {
    return absl::InfiniteDuration();
  }
  const gpr_timespec left = gpr_time_sub(monotonic, gpr_now(GPR_CLOCK_MONOTONIC));
  return std::max(absl::ZeroDuration(),
                  absl::Seconds(left.tv_sec) + absl::Nanoseconds(left.tv_nsec));
}

}  // namespace strata
