// Submissions to a scheduler whose disk may be busy.
#ifndef STRATA_TESTS_E2E_CLUSTER_SUBMIT_AGAIN_H_
#define STRATA_TESTS_E2E_CLUSTER_SUBMIT_AGAIN_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"

namespace strata {

// A disk that is busy answers late: the error says to submit again, and this does, up to nine
// times.
inline absl::StatusOr<SubmitReply> SubmitAgain(SchedulerClient& scheduler,
                                               const SubmitRequest& request, absl::Duration call) {
  auto reply = scheduler.Submit(request, call);
  for (int again = 0; again < 9 && absl::IsDeadlineExceeded(reply.status()); ++again) {
    reply = scheduler.Submit(request, call);
  }
  return reply;
}

}  // namespace strata

#endif  // STRATA_TESTS_E2E_CLUSTER_SUBMIT_AGAIN_H_
