// `strata predict` and `strata generate`.
// Tested by tests/e2e/verbs_process_test.cc
// Tested by tests/e2e/checkpoint_process_test.cc
#ifndef STRATA_TOOLS_CLI_DATA_COMMANDS_H_
#define STRATA_TOOLS_CLI_DATA_COMMANDS_H_

#include "tools/cli/base/exit_code.h"
#include "tools/cli/base/options.h"

namespace strata {

// Writes "label,score" for each input line, in input order.
ExitCode RunPredictCommand(const PredictCommandOptions& options);

ExitCode RunGenerateCriteo(const GenerateCriteoOptions& options);
ExitCode RunGenerateMovielens(const GenerateMovielensOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_DATA_COMMANDS_H_
