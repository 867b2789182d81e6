// `strata top`.
// Tested by tests/e2e/inspect_process_test.cc
#ifndef STRATA_TOOLS_CLI_INSPECT_TOP_COMMAND_H_
#define STRATA_TOOLS_CLI_INSPECT_TOP_COMMAND_H_

#include "tools/cli/base/exit_code.h"
#include "tools/cli/base/options.h"

namespace strata {

// On a terminal until Ctrl-C (then kExitOk); elsewhere, with once, once: two scrapes, one interval
// apart.
ExitCode RunTop(const TopOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_INSPECT_TOP_COMMAND_H_
