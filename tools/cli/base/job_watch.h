// Following a job of a cluster to its end.
#ifndef STRATA_TOOLS_CLI_BASE_JOB_WATCH_H_
#define STRATA_TOOLS_CLI_BASE_JOB_WATCH_H_

#include <atomic>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"

namespace strata {

// A job as typed: digits are its number, anything else its name.
JobRef ParseJobRef(absl::string_view text);

struct WatchOptions {
  absl::Duration interval = absl::Milliseconds(300);
  // How long the scheduler may be gone before the watch gives up.
  absl::Duration reconnect_limit = absl::Seconds(60);
  absl::Duration timeout = absl::InfiniteDuration();
  const std::atomic<bool>* interrupted = nullptr;
  const Clock* clock = Clock::Real();
  std::function<void(absl::Duration)> sleep;           // default absl::SleepFor
  std::function<void(const JobStatus&)> on_status;     // each answer
  std::function<void(const std::string&)> on_message;  // the scheduler went or came back
};

// Asks again and again until the job is in a final state. CANCELLED: interrupted.
// DEADLINE_EXCEEDED: `timeout` is over; UNAVAILABLE: the scheduler was gone for `reconnect_limit`.
// Other errors of GetJob end the watch at once.
absl::StatusOr<JobStatus> WatchJob(SchedulerClient& client, const JobRef& ref,
                                   const WatchOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_BASE_JOB_WATCH_H_
