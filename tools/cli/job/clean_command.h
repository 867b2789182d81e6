// `strata clean`: what killed runs left.
// Tested by tests/tools/cli/strata_binary_test.cc
#ifndef STRATA_TOOLS_CLI_JOB_CLEAN_COMMAND_H_
#define STRATA_TOOLS_CLI_JOB_CLEAN_COMMAND_H_

#include "tools/cli/base/exit_code.h"
#include "tools/cli/base/options.h"

namespace strata {

// Removes folders that no process holds and that were of a run in one process; tells of each, with
// its size, what was done and why.
ExitCode RunClean(const CleanOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_JOB_CLEAN_COMMAND_H_
