// What an error of a data call means, and how long to wait before the next try.
#ifndef STRATA_WORKER_CLIENT_RETRY_POLICY_H_
#define STRATA_WORKER_CLIENT_RETRY_POLICY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/runtime/base/backoff.h"
#include "proto/runtime/base/id_source.h"

namespace strata {

// A worker's waits: 10, 20, 40 ... 1000 ms, each spread by `random` (proto/runtime/base/backoff.h).
// When a worker comes back decides about no result.
class RetryPolicy : public Backoff {
 public:
  static constexpr absl::Duration kFirst = absl::Milliseconds(10);
  static constexpr absl::Duration kMost = absl::Seconds(1);

  explicit RetryPolicy(IdSource* random) : Backoff({kFirst, kMost, random}) {}
};

// What an error of a data call means to the caller (DESIGN.md section 5).
enum class ErrorClass : uint8_t {
  kRetry,   // UNAVAILABLE, DEADLINE_EXCEEDED, ABORTED, RESOURCE_EXHAUSTED, DATA_LOSS,
            // UNAUTHENTICATED: the same bytes again, after a wait
  kReopen,  // FAILED_PRECONDITION, NOT_FOUND: session, epoch or generation stale, so the call was
            // refused as a whole; open and resend
  kFatal,   // anything else: wrong, and always will be
};
ErrorClass Classify(const absl::Status& status);

// The same error with the server named; that of a lost device stays one.
absl::Status OfServer(uint32_t server, const absl::Status& status);

}  // namespace strata

#endif  // STRATA_WORKER_CLIENT_RETRY_POLICY_H_
