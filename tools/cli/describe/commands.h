// The tree of commands that CLI11 parses by, as plain values.
// Tested by tests/tools/cli/describe/completion_test.cc
// Tested by tests/tools/cli/describe/man_page_test.cc
#ifndef STRATA_TOOLS_CLI_DESCRIBE_COMMANDS_H_
#define STRATA_TOOLS_CLI_DESCRIBE_COMMANDS_H_

#include "tools/cli/describe/command_help.h"

namespace strata {

// The root, `strata`. Read from the very objects that parse the command line.
CommandHelp DescribeCommands();

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_DESCRIBE_COMMANDS_H_
