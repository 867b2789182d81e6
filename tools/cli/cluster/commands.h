// A cluster of real processes on this machine.
// Tested by tests/e2e/verbs_process_test.cc
#ifndef STRATA_TOOLS_CLI_CLUSTER_COMMANDS_H_
#define STRATA_TOOLS_CLI_CLUSTER_COMMANDS_H_

#include "tools/cli/base/exit_code.h"
#include "tools/cli/base/options.h"

namespace strata {

// Starts scheduler, servers and workers and returns when all have registered:
//   1. checks that nothing runs in the folder and that the programs are there
//   2. writes cluster.json and starts the supervisor in the background (RunSupervise)
//   3. asks the scheduler until every process is registered; on failure stops all again
//   4. writes the context file
ExitCode RunUp(const UpOptions& options);

// Stops what RunUp started, by the recorded process numbers, and removes the context. Processes
// are signalled only when their start times are the recorded ones.
ExitCode RunDown(const DownOptions& options);

// Shows the processes' logs, each line after the name of its process.
ExitCode RunLogs(const LogsOptions& options);

// The background half of RunUp; ends on SIGTERM.
ExitCode RunSupervise(const SuperviseOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_CLUSTER_COMMANDS_H_
