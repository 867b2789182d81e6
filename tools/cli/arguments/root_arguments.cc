#include <string>

#include "absl/strings/str_cat.h"
#include "tools/cli/arguments/argument_groups.h"
#include "tools/cli/base/exit_code.h"
#include "tools/cli/base/version.h"

namespace strata {
namespace {

// "Exit codes: 0 ok, 1 ...", in two lines.
std::string Footer() {
  std::string text = "Exit codes:";
  for (const ExitMeaning& exit : kExitMeanings) {
    const bool first = exit.code == kExitOk;
    absl::StrAppend(&text,
                    first                           ? " "
                    : exit.code == kExitInterrupted ? ",\n"
                                                    : ", ",
                    exit.code, " ", exit.meaning);
  }
  return text + ". Data go to stdout, messages to stderr.";
}

}  // namespace

void AddEverything(CLI::App& app, CommandSet& commands) {
  app.name("strata");
  app.description("Strata: a sharded, tiered parameter server for huge sparse models");
  app.require_subcommand(1);
  app.footer(Footer());
  app.set_help_all_flag("--help-all", "help of every command");
  app.set_version_flag("--version", std::string("strata ") + kVersion, "print the version");
  AddLocalCommands(app, commands);
  AddClusterCommands(app, commands);
  AddCertsCommands(app, commands);
  AddContextCommands(app, commands);
  AddJobCommands(app, commands);
  AddInspectCommands(app, commands);
  AddCheckpointCommands(app, commands);
  AddDataCommands(app, commands);
  AddModelCommands(app, commands);
  AddPlotCommand(app, commands);
  AddHelpCommands(app, commands);
}

}  // namespace strata
