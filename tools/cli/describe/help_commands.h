// `strata completion` and `strata man`: texts made from the commands themselves.
// Tested by tests/tools/cli/strata_binary_test.cc
#ifndef STRATA_TOOLS_CLI_DESCRIBE_HELP_COMMANDS_H_
#define STRATA_TOOLS_CLI_DESCRIBE_HELP_COMMANDS_H_

#include "tools/cli/base/exit_code.h"
#include "tools/cli/base/options.h"

namespace strata {

// Prints the script for options.shell.
ExitCode RunCompletion(const CompletionOptions& options);

// Writes every page into options.output; those of the daemons that are found beside `strata` too.
ExitCode RunMan(const ManOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_DESCRIBE_HELP_COMMANDS_H_
