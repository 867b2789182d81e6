#include "tools/cli/arguments/command_line.h"

#include <CLI/CLI.hpp>
#include <sstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/cli/arguments/argument_groups.h"
#include "tools/cli/arguments/command_set.h"
#include "tools/cli/base/nearest.h"

namespace strata {
namespace {

// The deepest subcommand that was recognised.
const CLI::App* Deepest(const CLI::App* app) {
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return app;
}

// "; did you mean '--wait'?" for an argument that nothing expected, or "".
std::string Suggest(const CLI::App& root, int argc, const char* const* argv) {
  const CLI::App* app = Deepest(&root);
  std::vector<std::string> options, names;
  for (const CLI::Option* option : app->get_options()) {
    for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
  }
  for (const CLI::App* sub : app->get_subcommands(nullptr)) {
    if (!sub->get_group().empty()) names.push_back(sub->get_name());
  }
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string argument = word.substr(0, word.find('='));
    const bool is_option = absl::StartsWith(argument, "--");
    const std::vector<std::string>& known = is_option ? options : names;
    if (argument == app->get_name() || std::count(known.begin(), known.end(), argument)) continue;
    const std::string nearest = Nearest(argument, known);
    if (!nearest.empty()) return absl::StrCat("; did you mean '", nearest, "'?");
  }
  return "";
}

}  // namespace

ParsedCommandLine ParseCommandLine(int argc, const char* const* argv) {
  CLI::App app;
  CommandSet commands;
  AddEverything(app, commands);
  ParsedCommandLine parsed;
  if (argc <= 1) return {std::nullopt, app.help(), 2};
  try {
    app.parse(argc, argv);
    parsed.command = commands.Chosen();
  } catch (const CLI::ParseError& e) {
    std::ostringstream out, err;
    parsed.exit_code = app.exit(e, out, err) == 0 ? 0 : 2;
    if (parsed.exit_code == 0) {
      parsed.text = out.str();
      return parsed;
    }
    std::string place = "strata";
    for (const CLI::App* sub = &app; !sub->get_subcommands().empty();) {
      sub = sub->get_subcommands().front();
      absl::StrAppend(&place, " ", sub->get_name());
    }
    const std::string what = e.what();
    parsed.text =
        absl::StrCat(place, ": ", what, Suggest(app, argc, argv), "\nTry: ", place, " --help\n");
  }
  return parsed;
}

}  // namespace strata
