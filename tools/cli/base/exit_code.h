// What the process `strata` ends with.
// Tested by tests/tools/cli/strata_binary_test.cc
#ifndef STRATA_TOOLS_CLI_BASE_EXIT_CODE_H_
#define STRATA_TOOLS_CLI_BASE_EXIT_CODE_H_

#include "absl/status/status.h"

namespace strata {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,  // the job failed, or the machine did (disk full, damaged file, ...)
  kExitUsage = 2,   // what was asked for is wrong: arguments, job file, unknown job, taken name
  kExitUnreachable = 3,  // no scheduler answers
  kExitDenied = 4,       // not allowed
  kExitTimeout = 5,
  kExitInterrupted = 130,  // Ctrl-C, as shells have it
};

// As help and manual tell them.
struct ExitMeaning {
  ExitCode code;
  const char* meaning;
};
inline constexpr ExitMeaning kExitMeanings[] = {
    {kExitOk, "ok"},
    {kExitFailed, "the job failed"},
    {kExitUsage, "wrong usage"},
    {kExitUnreachable, "no scheduler answers"},
    {kExitDenied, "denied"},
    {kExitTimeout, "timeout"},
    {kExitInterrupted, "interrupted"},
};

// The exit code for an error; kExitOk for OK.
ExitCode ExitCodeFor(const absl::Status& status);

// Prints "strata: " and the message on stderr; returns ExitCodeFor(status).
ExitCode ReportError(const absl::Status& status);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_BASE_EXIT_CODE_H_
