// How a server leaves its cluster: `strata-server --leave-cluster`.
#ifndef STRATA_SERVER_LEAVE_CLUSTER_H_
#define STRATA_SERVER_LEAVE_CLUSTER_H_

#include <string>

#include "absl/status/statusor.h"

namespace strata::server {

// Forgets the cluster, so that the next start may join another one; the text names the one that was
// left, empty: it was of none. `folder`: the server's own; nothing is made. INVALID_ARGUMENT: no
// server ever ran with it. FAILED_PRECONDITION: another process uses it, or it holds jobs.
absl::StatusOr<std::string> LeaveCluster(const std::string& folder);

}  // namespace strata::server

#endif  // STRATA_SERVER_LEAVE_CLUSTER_H_
