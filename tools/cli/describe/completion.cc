#include "tools/cli/describe/completion.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace strata {

void VisitCommands(const CommandHelp& root, const std::function<void(const CommandHelp&)>& visit) {
  visit(root);
  for (const CommandHelp& command : root.commands) VisitCommands(command, visit);
}

std::string ShellQuote(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string FishQuote(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

std::string QuotedCommands(const CommandHelp& root, const std::string& separator) {
  std::vector<std::string> paths;
  VisitCommands(root, [&](const CommandHelp& command) {
    if (command.path != root.path) paths.push_back(ShellQuote(command.path));
  });
  return absl::StrJoin(paths, separator);
}

}  // namespace strata
