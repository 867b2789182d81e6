// Arithmetic on what servers report of spec.lifeCycle.
// Tested by tests/scheduler/cluster_sim_test.cc
#ifndef STRATA_SCHEDULER_JOB_LIFE_CYCLE_SUMS_H_
#define STRATA_SCHEDULER_JOB_LIFE_CYCLE_SUMS_H_

#include "proto/strata/job.pb.h"

namespace strata::scheduler {

// Adds to each count of `sum`.
void AddLifeCycle(const LifeCycleCounts& counts, LifeCycleCounts& sum);
// Raises each count to the larger of the two: a server that came back counts from its image on.
void RaiseLifeCycle(const LifeCycleCounts& counts, LifeCycleCounts& most);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_LIFE_CYCLE_SUMS_H_
