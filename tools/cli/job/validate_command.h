// `strata validate`: what a job file means, before anything runs.
// Tested by tests/tools/cli/strata_binary_test.cc
#ifndef STRATA_TOOLS_CLI_JOB_VALIDATE_COMMAND_H_
#define STRATA_TOOLS_CLI_JOB_VALIDATE_COMMAND_H_

#include "absl/status/status.h"
#include "proto/strata/job.pb.h"
#include "tools/cli/base/exit_code.h"
#include "tools/cli/base/options.h"

namespace strata {

// Checks the file, and that the data it names can be read here; prints the job with all defaults
// as JSON, which is itself a job file, in the form that the options ask for.
ExitCode RunValidate(const ValidateOptions& options);

// INVALID_ARGUMENT, a line for each file of spec.data, and each vocabulary, that is missing, empty,
// no file or not readable, and each folder or glob without files. Tells on stderr which files
// folders and globs stand for.
absl::Status CheckDataFiles(const JobSpec& spec);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_JOB_VALIDATE_COMMAND_H_
