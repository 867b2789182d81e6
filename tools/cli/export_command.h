// `strata export`.
#ifndef STRATA_TOOLS_CLI_EXPORT_COMMAND_H_
#define STRATA_TOOLS_CLI_EXPORT_COMMAND_H_

#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"

namespace strata {

ExitCode RunExport(const ExportCommandOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_EXPORT_COMMAND_H_
