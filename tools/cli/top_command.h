// `strata top`.
#ifndef STRATA_TOOLS_CLI_TOP_COMMAND_H_
#define STRATA_TOOLS_CLI_TOP_COMMAND_H_

#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"

namespace strata {

// On a terminal until Ctrl-C (then kExitOk); elsewhere, with once, once: two scrapes, one interval
// apart.
ExitCode RunTop(const TopOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_TOP_COMMAND_H_
