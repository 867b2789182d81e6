#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tools/cli/describe/completion.h"

namespace strata {
namespace {

constexpr char kHead[] = R"sh(#compdef strata
# Completion of strata for zsh. Made by: strata completion zsh
_strata_jobs() {
  local -a jobs
  jobs=(${(f)"$(timeout 2 ${words[1]} list --json 2>/dev/null |
    grep -o '"name":"[^"]*"' | cut -d '"' -f 4)"})
  compadd -a jobs
}
)sh";

constexpr char kStart[] = R"sh(_strata() {
  local at=strata i
  local -a found
  for ((i = 2; i < CURRENT; ++i)); do
    case "$at ${words[i]}" in
      ()sh";

// What completes a value; a message when nothing can.
std::string Completer(const ArgumentHelp& argument) {
  switch (argument.kind) {
    case ValueKind::kFile:
      return "_files";
    case ValueKind::kFolder:
      return "_files -/";
    case ValueKind::kChoice:
      return absl::StrCat("compadd -- ", absl::StrJoin(argument.choices, " "));
    case ValueKind::kJob:
      return "_strata_jobs";
    case ValueKind::kField:
      return "compadd -a _strata_paths";
    case ValueKind::kAssignment:
      return "compadd -S = -a _strata_paths";
    default:
      return absl::StrCat("_message ", ShellQuote(argument.value));
  }
}

// 'name:text' as _describe reads it.
std::string Described(const std::string& name, const std::string& text) {
  return ShellQuote(absl::StrCat(absl::StrReplaceAll(name, {{":", "\\:"}}), ":", text));
}

std::string AfterCommand(const CommandHelp& command) {
  std::vector<std::string> options, names;
  for (const ArgumentHelp& option : command.options) {
    options.push_back(Described(option.names.back(), option.text));
  }
  for (const CommandHelp& below : command.commands) {
    names.push_back(Described(below.name(), below.text));
  }
  std::string text =
      absl::StrCat("    (", ShellQuote(command.path), ")\n      if [[ $PREFIX == -* ]]; then\n",
                   "        found=(", absl::StrJoin(options, "\n          "),
                   ")\n        _describe -o option found\n");
  if (!names.empty()) {
    absl::StrAppend(&text, "      else\n        found=(", absl::StrJoin(names, "\n          "),
                    ")\n        _describe command found\n");
  } else if (!command.positionals.empty()) {
    absl::StrAppend(&text, "      else\n        ", Completer(command.positionals[0]), "\n");
  }
  return absl::StrCat(text, "      fi ;;\n");
}

}  // namespace

std::string ZshCompletion(const CommandHelp& root, const std::vector<std::string>& fields) {
  std::string text =
      absl::StrCat(kHead, "typeset -ga _strata_paths\n_strata_paths=(", absl::StrJoin(fields, " "),
                   ")\n", kStart, QuotedCommands(root, "|"),
                   ") at+=\" ${words[i]}\" ;;\n    esac\n  done\n"
                   "  case \"$at ${words[CURRENT-1]}\" in\n");
  VisitCommands(root, [&](const CommandHelp& command) {
    for (const ArgumentHelp& option : command.options) {
      if (option.kind == ValueKind::kNone) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names) {
        patterns.push_back(ShellQuote(absl::StrCat(command.path, " ", name)));
      }
      absl::StrAppend(&text, "    (", absl::StrJoin(patterns, "|"), ") ", Completer(option),
                      "; return ;;\n");
    }
  });
  absl::StrAppend(&text, "  esac\n  case \"$at\" in\n");
  VisitCommands(root, [&](const CommandHelp& command) { text += AfterCommand(command); });
  return absl::StrCat(text,
                      "  esac\n}\nif [[ ${zsh_eval_context[-1]} == loadautofunc ]]; then\n"
                      "  _strata \"$@\"\nelif whence compdef >/dev/null; then\n"
                      "  compdef _strata strata\nfi\n");
}

}  // namespace strata
