// The tree of commands that CLI11 parses by, as plain values.
#ifndef STRATA_TOOLS_CLI_DESCRIBE_COMMANDS_H_
#define STRATA_TOOLS_CLI_DESCRIBE_COMMANDS_H_

#include "tools/cli/command_help.h"

namespace strata {

// The root, `strata`. Read from the very objects that parse the command line.
CommandHelp DescribeCommands();

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_DESCRIBE_COMMANDS_H_
