// `strata plot`.
// Tested by tests/tools/cli/plot/plot_command_test.cc
#ifndef STRATA_TOOLS_CLI_PLOT_COMMAND_H_
#define STRATA_TOOLS_CLI_PLOT_COMMAND_H_

#include "tools/cli/base/exit_code.h"
#include "tools/cli/base/options.h"

namespace strata {

ExitCode RunPlot(const PlotOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_PLOT_COMMAND_H_
