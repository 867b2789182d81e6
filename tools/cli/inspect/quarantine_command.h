// `strata nodes adopt` and `strata nodes purge`.
// Tested by tests/faults/restored_scheduler_test.cc, tests/faults/adopted_job_test.cc
#ifndef STRATA_TOOLS_CLI_INSPECT_QUARANTINE_COMMAND_H_
#define STRATA_TOOLS_CLI_INSPECT_QUARANTINE_COMMAND_H_

#include "tools/cli/base/exit_code.h"
#include "tools/cli/base/options.h"

namespace strata {

// Returns when the job is one of the cluster, which need not train yet.
ExitCode RunNodesAdopt(const NodesAdoptOptions& options);
// Returns when the copy is gone.
ExitCode RunNodesPurge(const NodesPurgeOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_INSPECT_QUARANTINE_COMMAND_H_
