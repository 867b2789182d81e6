// A job on an embedded cluster whose servers and workers are stopped and started meanwhile.
#ifndef STRATA_TESTS_E2E_CLUSTER_DISTURBED_RUN_H_
#define STRATA_TESTS_E2E_CLUSTER_DISTURBED_RUN_H_

#include <cstdint>
#include <functional>
#include <string>

#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tools/cluster/embedded/cluster.h"

namespace strata::testing {

// Runs the job on 2 servers and 2 workers with short leases; `disturb` is called once, when the
// job's step (bsp: clock, async: windows applied) has reached `at`. Returns the final status,
// whatever it is; checks that there was something to disturb.
JobStatus RunDisturbed(const TrainingJob& job, const std::string& folder, uint64_t at,
                       const std::function<void(EmbeddedCluster&, const JobRef&)>& disturb);

// Stops both servers and worker 0 at once, and starts them again.
void RestartNearlyAll(EmbeddedCluster& cluster);

}  // namespace strata::testing

#endif  // STRATA_TESTS_E2E_CLUSTER_DISTURBED_RUN_H_
