// Who hosts a job's lanes, and whose pushes its servers are to take. Pure functions of the job's
// record.
//
// A lane changes its host in two steps, each of which is recorded:
//   1. It is taken from the host that is to have it no more. Servers are told of the sessions that
//      host lanes from now on: those that are to have some, whether they have them yet or not. The
//      list has a number, which grows with each change (lane_epoch).
//   2. It is given to its next host when every server of the job goes by that list: then none takes
//      a push of a session that left, and each takes those of the ones that came.
// What was given stays given, whatever is not known of servers meanwhile (after a restart of the
// scheduler, or of a server).
#ifndef STRATA_SCHEDULER_JOB_LANE_HOSTS_H_
#define STRATA_SCHEDULER_JOB_LANE_HOSTS_H_

#include <cstdint>
#include <vector>

#include "scheduler/state/state.pb.h"

namespace strata::scheduler {

// Step 1. `wanted`: by lane, the session that is to host it; 0: nobody.
void TakeLanes(const std::vector<uint64_t>& wanted, JobStateRecord& state);

// Step 2. REQUIRES: TakeLanes(wanted) came before, and all servers go by state.lane_epoch().
void GiveLanes(const std::vector<uint64_t>& wanted, JobStateRecord& state);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_LANE_HOSTS_H_
