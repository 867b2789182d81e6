// `strata get-row`.
#ifndef STRATA_TOOLS_CLI_GET_ROW_COMMAND_H_
#define STRATA_TOOLS_CLI_GET_ROW_COMMAND_H_

#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"

namespace strata {

// With a job: from its running servers, else, when it is over, from its checkpoint.
ExitCode RunGetRow(const GetRowOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_GET_ROW_COMMAND_H_
