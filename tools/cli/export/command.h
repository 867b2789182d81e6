// `strata export`.
// Tested by tests/e2e/readme_test.cc
#ifndef STRATA_TOOLS_CLI_EXPORT_COMMAND_H_
#define STRATA_TOOLS_CLI_EXPORT_COMMAND_H_

#include "tools/cli/base/exit_code.h"
#include "tools/cli/base/options.h"

namespace strata {

ExitCode RunExport(const ExportCommandOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_EXPORT_COMMAND_H_
