// Making, listing, verifying, comparing, repairing and quantising checkpoints.
// Tested by tests/e2e/checkpoint_process_test.cc
#ifndef STRATA_TOOLS_CLI_CHECKPOINT_COMMANDS_H_
#define STRATA_TOOLS_CLI_CHECKPOINT_COMMANDS_H_

#include <string>

#include "absl/status/statusor.h"
#include "tools/cli/base/exit_code.h"
#include "tools/cli/base/options.h"

namespace strata {

ExitCode RunCheckpointCreate(const CheckpointCreateOptions& options);
ExitCode RunCheckpointList(const CheckpointListOptions& options);
ExitCode RunCheckpointVerify(const CheckpointVerifyOptions& options);
ExitCode RunCheckpointShow(const CheckpointShowOptions& options);
ExitCode RunCheckpointDiff(const CheckpointDiffOptions& options);
ExitCode RunCheckpointRepair(const CheckpointRepairOptions& options);
ExitCode RunCheckpointQuantise(const CheckpointQuantiseOptions& options);

// The newest checkpoint of a job (number or name), asked of the scheduler.
absl::StatusOr<std::string> CheckpointOfJob(const ClusterOptions& cluster, const std::string& job);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_CHECKPOINT_COMMANDS_H_
