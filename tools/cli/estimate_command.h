// `strata estimate`: how much memory a job will take.
#ifndef STRATA_TOOLS_CLI_ESTIMATE_COMMAND_H_
#define STRATA_TOOLS_CLI_ESTIMATE_COMMAND_H_

#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"

namespace strata {

// Reads the job file and its training data, prints the estimate.
ExitCode RunEstimate(const EstimateOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_ESTIMATE_COMMAND_H_
