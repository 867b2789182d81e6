// `strata certs ...`.
// Tested by tests/tools/cli/certs/certs_command_test.cc
#ifndef STRATA_TOOLS_CLI_CERTS_COMMANDS_H_
#define STRATA_TOOLS_CLI_CERTS_COMMANDS_H_

#include "tools/cli/base/exit_code.h"
#include "tools/cli/base/options.h"

namespace strata {

// Each prints what it made or found on stdout, for people or as one line of JSON. No key is
// printed.
ExitCode RunCertsInit(const CertsInitOptions& options);
ExitCode RunCertsIssue(const CertsIssueOptions& options);
ExitCode RunCertsRenew(const CertsRenewOptions& options);
ExitCode RunCertsRollover(const CertsRolloverOptions& options);
ExitCode RunCertsRevoke(const CertsRevokeOptions& options);
// kExitFailed, after the list, where some certificates cannot be read; says which on stderr.
ExitCode RunCertsShow(const CertsShowOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_CERTS_COMMANDS_H_
