// `strata import`.
// Tested by tests/bad_input/bad_import_test.cc
#ifndef STRATA_TOOLS_CLI_IMPORT_COMMAND_H_
#define STRATA_TOOLS_CLI_IMPORT_COMMAND_H_

#include "tools/cli/base/exit_code.h"
#include "tools/cli/base/options.h"

namespace strata {

ExitCode RunImport(const ImportCommandOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_IMPORT_COMMAND_H_
