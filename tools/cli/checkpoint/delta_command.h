// `strata delta`: what a delta file or a stream of removed keys holds.
#ifndef STRATA_TOOLS_CLI_CHECKPOINT_DELTA_COMMAND_H_
#define STRATA_TOOLS_CLI_CHECKPOINT_DELTA_COMMAND_H_

#include "tools/cli/base/exit_code.h"
#include "tools/cli/base/options.h"

namespace strata {

// Prints the files' contents on stdout; with options.rows their rows, and the rest on stderr.
ExitCode RunDelta(const DeltaCommandOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_CHECKPOINT_DELTA_COMMAND_H_
