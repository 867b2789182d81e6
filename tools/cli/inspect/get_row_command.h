// `strata get-row`.
// Tested by tests/e2e/inspect_process_test.cc
#ifndef STRATA_TOOLS_CLI_INSPECT_GET_ROW_COMMAND_H_
#define STRATA_TOOLS_CLI_INSPECT_GET_ROW_COMMAND_H_

#include "tools/cli/base/exit_code.h"
#include "tools/cli/base/options.h"

namespace strata {

// With a job: from its running servers, else, when it is over, from its checkpoint.
ExitCode RunGetRow(const GetRowOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_INSPECT_GET_ROW_COMMAND_H_
