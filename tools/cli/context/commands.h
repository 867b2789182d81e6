// `strata context ...`: see tools/cli/arguments/context_arguments.cc.
// Tested by tests/tools/cli/context/context_command_test.cc
#ifndef STRATA_TOOLS_CLI_CONTEXT_COMMANDS_H_
#define STRATA_TOOLS_CLI_CONTEXT_COMMANDS_H_

#include "tools/cli/base/exit_code.h"
#include "tools/cli/base/options.h"

namespace strata {

ExitCode RunContextAdd(const ContextAddOptions& options);
ExitCode RunContextUse(const ContextUseOptions& options);
ExitCode RunContextList(const ContextListOptions& options);
ExitCode RunContextRemove(const ContextRemoveOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_CONTEXT_COMMANDS_H_
