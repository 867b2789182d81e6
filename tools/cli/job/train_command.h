// `strata train`: a job in this process.
// Tested by tests/tools/cli/terminal_test.cc
#ifndef STRATA_TOOLS_CLI_JOB_TRAIN_COMMAND_H_
#define STRATA_TOOLS_CLI_JOB_TRAIN_COMMAND_H_

#include "tools/cli/base/exit_code.h"
#include "tools/cli/base/options.h"

namespace strata {

// Trains with the embedded cluster. Ctrl-C makes a checkpoint and tells how to resume.
ExitCode RunTrain(const TrainOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_JOB_TRAIN_COMMAND_H_
