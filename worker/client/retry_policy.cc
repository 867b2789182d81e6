#include "worker/client/retry_policy.h"

#include "absl/strings/str_cat.h"
#include "ops/cuda/api/api.h"
#include "proto/core/mutation.h"

namespace strata {

absl::Status OfServer(uint32_t server, const absl::Status& status) {
  const absl::Status named(status.code(), absl::StrCat("server ", server, ": ", status.message()));
  return ops::gpu::IsDeviceLost(status) ? ops::gpu::DeviceLost(named) : named;
}

ErrorClass Classify(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kDataLoss:
    // A certificate or a session credential that is over: a newer one comes, or the scheduler ends
    // the session.
    case absl::StatusCode::kUnauthenticated:
      return ErrorClass::kRetry;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kNotFound:
      return ErrorClass::kReopen;
    default:
      return STRATA_MUTATION("retry.fatal_is_retried") ? ErrorClass::kRetry : ErrorClass::kFatal;
  }
}

}  // namespace strata
