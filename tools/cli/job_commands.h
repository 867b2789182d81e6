// Commands that talk to a scheduler about jobs. Each prints data on stdout and messages on stderr.
#ifndef STRATA_TOOLS_CLI_JOB_COMMANDS_H_
#define STRATA_TOOLS_CLI_JOB_COMMANDS_H_

#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"

namespace strata {

ExitCode RunSubmit(const SubmitOptions& options);
ExitCode RunList(const ListOptions& options);
ExitCode RunStatus(const StatusOptions& options);
ExitCode RunCancel(const CancelOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_JOB_COMMANDS_H_
