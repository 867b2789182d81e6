// A command's way to the scheduler.
// Tested by tests/tools/cli/context/choice_test.cc
// Tested by tests/tools/cli/context/context_command_test.cc
#ifndef STRATA_TOOLS_CLI_CONTEXT_CONNECTION_H_
#define STRATA_TOOLS_CLI_CONTEXT_CONNECTION_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/runtime/transport/keepalive.h"
#include "proto/runtime/transport/process_tls.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "tools/cli/base/options.h"
#include "tools/cli/context/choice.h"

namespace strata {

// Where a command goes, and what it shows there.
struct Way {
  ChosenCluster chosen;
  std::shared_ptr<ProcessTls> tls;  // null: nothing, without TLS
};
// Errors are those of ChooseCluster, and UNAUTHENTICATED where the certificate is no good: the text
// says how it was chosen.
absl::StatusOr<Way> FindWay(const ClusterOptions& given);

// Does not connect yet. Errors of the client's calls that may come of a wrong choice (nobody
// answers there, or lets the caller in) say how the cluster was chosen. `lease`: as
// MakeGrpcSchedulerClient takes it.
std::unique_ptr<SchedulerClient> ConnectScheduler(const Way& way, KnownLease* lease = nullptr);
// Both.
absl::StatusOr<std::unique_ptr<SchedulerClient>> ConnectScheduler(const ClusterOptions& given);

// An error of a call, with how the cluster was chosen if that may be why. Pure.
absl::Status WithChoice(const absl::Status& status, const ChosenCluster& chosen);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_CONTEXT_CONNECTION_H_
