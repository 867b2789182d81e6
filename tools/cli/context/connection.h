// A command's way to the scheduler.
// Tested by tests/tools/cli/context/choice_test.cc
// Tested by tests/tools/cli/context/context_command_test.cc
#ifndef STRATA_TOOLS_CLI_CONTEXT_CONNECTION_H_
#define STRATA_TOOLS_CLI_CONTEXT_CONNECTION_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/runtime/transport/keepalive.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "tools/cli/base/options.h"
#include "tools/cli/context/choice.h"

namespace strata {

// Does not connect yet. Errors are those of ChooseCluster. Errors of the client's calls that may
// come of a wrong choice (nobody answers there, or lets the caller in) say how the cluster was
// chosen. `lease`: as MakeGrpcSchedulerClient takes it.
absl::StatusOr<std::unique_ptr<SchedulerClient>> ConnectScheduler(const ClusterOptions& given,
                                                                  KnownLease* lease = nullptr);

// An error of a call, with how the cluster was chosen if that may be why. Pure.
absl::Status WithChoice(const absl::Status& status, const ChosenCluster& chosen);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_CONTEXT_CONNECTION_H_
