// Training that stands: since when nothing was committed, and who it waits for.
// Tested by tests/scheduler/job/machine_concerns_test.cc
#ifndef STRATA_SCHEDULER_JOB_CONCERNS_STUCK_H_
#define STRATA_SCHEDULER_JOB_CONCERNS_STUCK_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "proto/strata/job.pb.h"
#include "scheduler/job/concerns/job_view.h"

namespace strata::scheduler {

// How far a job is.
struct StuckFacts {
  uint64_t progress = 0;    // steps, or tasks, that are done
  uint64_t generation = 0;  // in which
  bool finished = false;    // nothing is left to be trained
  uint64_t max_clock = 0;   // bsp: the furthest that a server has committed
};

// A pure state machine: one thread, no clock.
class StuckWatch {
 public:
  // Of training that stands for so long people are told; an evaluation is no such case.
  static constexpr absl::Duration kStuckAfter = absl::Seconds(10);

  // Nothing: it moves, or not for long enough.
  std::optional<Concern> Look(const JobView& job, const StuckFacts& facts, absl::Time now);
  void Clear() { since_.reset(); }

 private:
  uint64_t progress_ = 0, generation_ = 0;  // of the last move
  std::optional<absl::Time> since_;         // when that was
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_CONCERNS_STUCK_H_
