#include "tools/cli/describe/commands.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/cli/arguments/argument_groups.h"
#include "tools/cli/arguments/command_set.h"

namespace strata {
namespace {

ValueKind KindOf(const std::string& value) {
  if (value.empty()) return ValueKind::kNone;
  if (value == "FILE") return ValueKind::kFile;
  if (value == "DIR") return ValueKind::kFolder;
  if (value == "JOB") return ValueKind::kJob;
  if (value == "FIELD") return ValueKind::kField;
  if (value == "PATH=VALUE") return ValueKind::kAssignment;
  return ValueKind::kOther;
}

// CLI11 writes type and checks as "UINT:INT in [1 - 256]" and "TEXT:{bash,zsh}".
ArgumentHelp Describe(const CLI::Option& option) {
  ArgumentHelp help;
  for (const std::string& name : option.get_snames()) help.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) help.names.push_back("--" + name);
  help.text = option.get_description();
  help.required = option.get_required();
  if (option.get_items_expected_max() == 0) return help;
  help.standard = option.get_default_str();
  help.repeated = option.get_items_expected_max() > 1;
  const std::pair<std::string, std::string> type =
      absl::StrSplit(option.get_type_name(), absl::MaxSplits(':', 1));
  help.value = type.first;
  help.kind = KindOf(help.value);
  const std::string& check = type.second;
  if (check.size() > 2 && check.front() == '{' && check.back() == '}') {
    help.choices = absl::StrSplit(check.substr(1, check.size() - 2), ',');
    help.kind = ValueKind::kChoice;
  } else if (help.kind == ValueKind::kOther &&
             option.get_type_name().find("in [") == std::string::npos && !check.empty()) {
    help.value = option.get_type_name();  // "HOST:PORT"
  }
  return help;
}

CommandHelp Describe(const CLI::App& app, const std::string& path) {
  CommandHelp help;
  help.path = path;
  help.text = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    (option->get_positional() ? help.positionals : help.options).push_back(Describe(*option));
  }
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_group().empty()) continue;
    help.commands.push_back(Describe(*command, absl::StrCat(path, " ", command->get_name())));
  }
  return help;
}

}  // namespace

CommandHelp DescribeCommands() {
  CLI::App app;
  CommandSet commands;
  AddEverything(app, commands);
  return Describe(app, "strata");
}

}  // namespace strata
