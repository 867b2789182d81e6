// `strata train`: a job in this process.
#ifndef STRATA_TOOLS_CLI_TRAIN_COMMAND_H_
#define STRATA_TOOLS_CLI_TRAIN_COMMAND_H_

#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"

namespace strata {

// Trains with the embedded cluster. Ctrl-C makes a checkpoint and tells how to resume.
ExitCode RunTrain(const TrainOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_TRAIN_COMMAND_H_
