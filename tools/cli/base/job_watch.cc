#include "tools/cli/base/job_watch.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tools/cli/base/job_text.h"

namespace strata {

JobRef ParseJobRef(absl::string_view text) {
  JobRef ref;
  uint64_t number = 0;
  if (text.find_first_not_of("0123456789") == absl::string_view::npos &&
      absl::SimpleAtoi(text, &number)) {
    ref.set_job(number);
  } else {
    ref.set_name(std::string(text));
  }
  return ref;
}

absl::StatusOr<JobStatus> WatchJob(SchedulerClient& client, const JobRef& ref,
                                   const WatchOptions& options) {
  const auto tell = [&](const std::string& line) {
    if (options.on_message) options.on_message(line);
  };
  const absl::Time start = options.clock->Now();
  absl::Time last_answer = start;
  bool gone = false;
  for (;;) {
    const absl::StatusOr<JobStatus> status = client.GetJob(ref, absl::Seconds(5));
    const absl::Time now = options.clock->Now();
    if (status.ok()) {
      if (gone) tell("the scheduler answers again");
      gone = false;
      last_answer = now;
      if (options.on_status) options.on_status(*status);
      if (IsFinal(status->state())) return *status;
    } else if (absl::IsUnavailable(status.status()) || absl::IsDeadlineExceeded(status.status())) {
      if (!gone) {
        tell(absl::StrCat("the scheduler does not answer (", status.status().message(),
                          "); the job goes on, and this waits up to ",
                          Duration(absl::ToDoubleSeconds(options.reconnect_limit)), " for it"));
      }
      gone = true;
      if (now - last_answer >= options.reconnect_limit) {
        return absl::UnavailableError(absl::StrCat(
            "the scheduler was gone for ", Duration(absl::ToDoubleSeconds(now - last_answer)), ": ",
            status.status().message()));
      }
    } else {
      return status.status();
    }
    if (options.interrupted != nullptr && options.interrupted->load()) {
      return absl::CancelledError("interrupted");
    }
    if (now - start >= options.timeout) {
      return absl::DeadlineExceededError(absl::StrCat(
          "the job is not at its end after ", Duration(absl::ToDoubleSeconds(options.timeout))));
    }
    if (options.sleep) {
      options.sleep(options.interval);
    } else {
      absl::SleepFor(options.interval);
    }
  }
}

}  // namespace strata
