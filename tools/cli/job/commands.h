// Commands that talk to a scheduler about jobs. Each prints data on stdout and messages on stderr.
// Tested by tests/e2e/verbs_process_test.cc
#ifndef STRATA_TOOLS_CLI_JOB_COMMANDS_H_
#define STRATA_TOOLS_CLI_JOB_COMMANDS_H_

#include "tools/cli/base/exit_code.h"
#include "tools/cli/base/options.h"

namespace strata {

ExitCode RunSubmit(const SubmitOptions& options);
ExitCode RunList(const ListOptions& options);
ExitCode RunStatus(const StatusOptions& options);
ExitCode RunCancel(const CancelOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_JOB_COMMANDS_H_
