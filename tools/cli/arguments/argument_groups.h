// What can be typed, one file per group of commands (NAME_arguments.cc).
// Tested by tests/tools/cli/arguments/command_line_test.cc
#ifndef STRATA_TOOLS_CLI_ARGUMENTS_ARGUMENT_GROUPS_H_
#define STRATA_TOOLS_CLI_ARGUMENTS_ARGUMENT_GROUPS_H_

#include <CLI/CLI.hpp>

#include "tools/cli/arguments/command_set.h"

namespace strata {

// The whole of `strata`: its own flags and every command.
void AddEverything(CLI::App& app, CommandSet& commands);

// Each adds its commands to `app`, in the order in which help lists them.
void AddLocalCommands(CLI::App& app, CommandSet& commands);
void AddClusterCommands(CLI::App& app, CommandSet& commands);
void AddCertsCommands(CLI::App& app, CommandSet& commands);
void AddContextCommands(CLI::App& app, CommandSet& commands);
void AddJobCommands(CLI::App& app, CommandSet& commands);
void AddInspectCommands(CLI::App& app, CommandSet& commands);
void AddCheckpointCommands(CLI::App& app, CommandSet& commands);
void AddDataCommands(CLI::App& app, CommandSet& commands);
void AddModelCommands(CLI::App& app, CommandSet& commands);
void AddPlotCommand(CLI::App& app, CommandSet& commands);
void AddHelpCommands(CLI::App& app, CommandSet& commands);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_ARGUMENTS_ARGUMENT_GROUPS_H_
