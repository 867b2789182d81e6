// Keeps the processes of a local cluster running: the background half of `strata up`.
#ifndef STRATA_TOOLS_CLI_CLUSTER_SUPERVISOR_H_
#define STRATA_TOOLS_CLI_CLUSTER_SUPERVISOR_H_

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/base/clock.h"
#include "tools/cli/cluster/cluster_dir.h"

namespace strata {

struct SupervisorOptions {
  // A dead process is started again after this long, doubled each time up to the maximum; one that
  // lived for `healthy_after` starts over.
  absl::Duration first_backoff = absl::Milliseconds(200);
  absl::Duration max_backoff = absl::Seconds(10);
  absl::Duration healthy_after = absl::Seconds(30);
  // How long processes have to end by themselves after SIGTERM, before SIGKILL.
  absl::Duration stop_limit = absl::Seconds(20);
  // How often certificates are looked at by the wall clock, and renewed as at a start.
  absl::Duration look_at_certs = absl::Hours(1);
  // Says how long processes lived and what has expired; outlives the supervisor.
  Clock* clock = Clock::Real();
};

// Path of a program of the cluster ("strata-server"): in `bin_dir` if that is given, else beside
// this program, else where the build puts it. NOT_FOUND names the places.
absl::StatusOr<std::string> FindProgram(const std::string& bin_dir, const std::string& program);

// Runs the cluster that `dir` describes (ClusterDir::WriteConfig) until `stop` is set, then stops
// its processes: workers first, then servers, then the scheduler. Restarts whichever dies; the
// scheduler always comes back at the address it had. Renews certificates before they expire
// (MakeClusterCerts); processes read them while they run. Signals must not be handled elsewhere in
// the process; the caller has one thread. ALREADY_EXISTS: another supervisor is at work here.
absl::Status Supervise(const ClusterDir& dir, const SupervisorOptions& options,
                       const std::atomic<bool>& stop);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_CLUSTER_SUPERVISOR_H_
