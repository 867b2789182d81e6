// The certificates of a cluster that `strata up` starts: a CA of its own in its folder, and an
// identity for each process and for the user.
#ifndef STRATA_TOOLS_CLI_CLUSTER_CLUSTER_CERTS_H_
#define STRATA_TOOLS_CLI_CLUSTER_CLUSTER_CERTS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/credentials/identity.h"
#include "tools/cli/cluster/cluster_dir.h"

namespace strata {

// How long certificates of processes are good for, and how few days may be left at a start without
// a renewal: a cluster that is started at times never comes near the warning at 30.
inline constexpr int kClusterCertDays = 90;
inline constexpr int kRenewAtDays = 45;

// Of a process of the cluster: a link that a renewal leads elsewhere.
std::string ProcessCertsFolder(const ClusterDir& dir, const std::string& process);
// The name of the operator who starts the cluster, and decides about all of it: the user's, or
// "operator" where that is no name of a certificate.
std::string ClusterUser();
// The role that a process of the cluster has: "server-0" is a server.
Role RoleOfProcess(const std::string& process);

// Makes the CA where it is missing (of the cluster that the nodes' folders remember, else of a new
// one), issues what is missing for the scheduler, servers, workers and the user, and renews what
// has kRenewAtDays or fewer left, or is damaged. The folder of the user's certificate, an
// operator's. Steps may be done again after any error. Errors are those of authority_files.h and
// identity_files.h.
absl::StatusOr<std::string> MakeClusterCerts(const ClusterDir& dir, const ClusterConfig& config,
                                             absl::Time now);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_CLUSTER_CLUSTER_CERTS_H_
