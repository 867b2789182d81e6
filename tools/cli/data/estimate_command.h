// `strata estimate`: how much memory a job will take.
// Tested by tests/tools/cli/strata_binary_test.cc
#ifndef STRATA_TOOLS_CLI_DATA_ESTIMATE_COMMAND_H_
#define STRATA_TOOLS_CLI_DATA_ESTIMATE_COMMAND_H_

#include "tools/cli/base/exit_code.h"
#include "tools/cli/base/options.h"

namespace strata {

// Reads the job file and its training data, prints the estimate.
ExitCode RunEstimate(const EstimateOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_DATA_ESTIMATE_COMMAND_H_
