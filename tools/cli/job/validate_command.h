// `strata validate`: what a job file means, before anything runs.
// Tested by tests/tools/cli/strata_binary_test.cc
#ifndef STRATA_TOOLS_CLI_JOB_VALIDATE_COMMAND_H_
#define STRATA_TOOLS_CLI_JOB_VALIDATE_COMMAND_H_

#include "tools/cli/base/exit_code.h"
#include "tools/cli/base/options.h"

namespace strata {

// Checks the file, and that the data it names can be read here; prints the job with all defaults
// as JSON, which is itself a job file, in the form that the options ask for. Tells on stderr which
// files folders and globs stand for, and which are read twice.
ExitCode RunValidate(const ValidateOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_JOB_VALIDATE_COMMAND_H_
