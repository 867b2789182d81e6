// `strata predict` and `strata generate`.
#ifndef STRATA_TOOLS_CLI_DATA_COMMANDS_H_
#define STRATA_TOOLS_CLI_DATA_COMMANDS_H_

#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"

namespace strata {

// Writes "label,score" for each input line, in input order.
ExitCode RunPredictCommand(const PredictCommandOptions& options);

ExitCode RunGenerateCriteo(const GenerateCriteoOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_DATA_COMMANDS_H_
