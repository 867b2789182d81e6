// `strata nodes`, `strata shards` and `strata events`.
// Tested by tests/e2e/inspect_process_test.cc
#ifndef STRATA_TOOLS_CLI_INSPECT_COMMANDS_H_
#define STRATA_TOOLS_CLI_INSPECT_COMMANDS_H_

#include "tools/cli/base/exit_code.h"
#include "tools/cli/base/options.h"

namespace strata {

ExitCode RunNodes(const NodesOptions& options);
ExitCode RunShards(const ShardsOptions& options);
// With follow: until Ctrl-C (then kExitOk: there is no end to wait for).
ExitCode RunEvents(const EventsOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_INSPECT_COMMANDS_H_
