// What keeps a job from resuming.
#ifndef STRATA_TESTS_SCHEDULER_STATE_RESUME_PROBLEM_H_
#define STRATA_TESTS_SCHEDULER_STATE_RESUME_PROBLEM_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"
#include "scheduler/state/resume.h"
#include "tests/scheduler/state/saved_jobs.h"

namespace strata::scheduler {

// Of a checkpoint of `then`; "OK": nothing.
inline std::string ResumeProblem(const TrainingJob& now, const TrainingJob& then,
                                 uint32_t numeric = 0) {
  const Manifest saved = SavedBy(then, numeric);
  const absl::Status status = CheckResumable(now, saved);
  return status.ok() ? "OK" : std::string(status.message());
}

}  // namespace strata::scheduler

#endif  // STRATA_TESTS_SCHEDULER_STATE_RESUME_PROBLEM_H_
