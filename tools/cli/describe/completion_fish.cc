#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/cli/describe/completion.h"

namespace strata {
namespace {

constexpr char kHead[] = R"sh(# Completion of strata for fish. Made by: strata completion fish
function __strata_jobs
    set -l words (commandline -opc)
    timeout 2 $words[1] list --json 2>/dev/null | string match -ar '"name":"[^"]*"' |
        string replace -r '.*:"(.*)"' '$1'
end
function __strata_at
    set -l at strata
    set -l words (commandline -opc)
    for word in $words[2..-1]
        if contains -- "$at $word" )sh";

constexpr char kAfterCommands[] = R"sh(
            set at "$at $word"
        end
    end
    test "$at" = "$argv"
end
complete -c strata -f
)sh";

// What follows `complete ...` so that a value is completed.
std::string Completer(const ArgumentHelp& argument) {
  switch (argument.kind) {
    case ValueKind::kFile:
      return " -F";
    case ValueKind::kFolder:
      return " -a '(__fish_complete_directories)'";
    case ValueKind::kChoice:
      return absl::StrCat(" -a ", FishQuote(absl::StrJoin(argument.choices, " ")));
    case ValueKind::kJob:
      return " -a '(__strata_jobs)'";
    case ValueKind::kField:
      return " -a '$__strata_paths'";
    case ValueKind::kAssignment:
      return " -a '$__strata_paths='";
    default:
      return "";
  }
}

}  // namespace

std::string FishCompletion(const CommandHelp& root, const std::vector<std::string>& fields) {
  std::string text = absl::StrCat(kHead, QuotedCommands(root, " "), kAfterCommands,
                                  "set -g __strata_paths ", absl::StrJoin(fields, " "), "\n");
  VisitCommands(root, [&](const CommandHelp& command) {
    const std::string start =
        absl::StrCat("complete -c strata -n ", FishQuote("__strata_at " + command.path));
    for (const CommandHelp& below : command.commands) {
      absl::StrAppend(&text, start, " -a ", below.name(), " -d ", FishQuote(below.text), "\n");
    }
    for (const ArgumentHelp& option : command.options) {
      text += start;
      for (const std::string& name : option.names) {
        const bool is_long = name.size() > 2;
        absl::StrAppend(&text, is_long ? " -l " : " -s ", name.substr(is_long ? 2 : 1));
      }
      if (option.kind != ValueKind::kNone) text += " -r";
      absl::StrAppend(&text, Completer(option), " -d ", FishQuote(option.text), "\n");
    }
    if (!command.positionals.empty()) {
      const std::string completer = Completer(command.positionals[0]);
      if (!completer.empty()) absl::StrAppend(&text, start, completer, "\n");
    }
  });
  return text;
}

}  // namespace strata
