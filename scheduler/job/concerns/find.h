// What is slow or out of reach in a job now. Pure functions; `out` gets what each finds.
// Tested by tests/scheduler/job/machine_concerns_test.cc
#ifndef STRATA_SCHEDULER_JOB_CONCERNS_FIND_H_
#define STRATA_SCHEDULER_JOB_CONCERNS_FIND_H_

#include <vector>

#include "absl/time/time.h"
#include "proto/strata/job.pb.h"
#include "scheduler/job/concerns/job_view.h"
#include "scheduler/job/concerns/slow_workers.h"

namespace strata::scheduler {

void FindSlowWorkers(const JobView& job, const SlowWorkers& speeds, absl::Time now,
                     std::vector<Concern>& out);
// What nodes say of themselves.
void FindTroubles(const JobView& job, std::vector<Concern>& out);
void FindSilentServers(const JobView& job, absl::Time now, std::vector<Concern>& out);
// A node that the scheduler hears, and that another one does not: the network between them is
// broken, one way or both.
void FindUnreachable(const JobView& job, absl::Time now, std::vector<Concern>& out);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_CONCERNS_FIND_H_
