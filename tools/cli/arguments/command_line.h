// Reads the command line (what can be typed: argument_groups.h).
#ifndef STRATA_TOOLS_CLI_ARGUMENTS_COMMAND_LINE_H_
#define STRATA_TOOLS_CLI_ARGUMENTS_COMMAND_LINE_H_

#include <optional>
#include <string>

#include "tools/cli/base/options.h"

namespace strata {

// Either a command, or text to print and the exit code: 0 for help, 2 for wrong usage (the text
// then names the argument and, where one is near, what was probably meant).
struct ParsedCommandLine {
  std::optional<Command> command;
  std::string text;
  int exit_code = 0;
};

ParsedCommandLine ParseCommandLine(int argc, const char* const* argv);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_ARGUMENTS_COMMAND_LINE_H_
