#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/cli/describe/completion.h"

namespace strata {
namespace {

constexpr char kHead[] = R"sh(# Completion of strata for bash. Made by: strata completion bash
_strata_words() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}
_strata_files() {
  mapfile -t COMPREPLY < <(compgen "$1" -- "$2")
  compopt -o filenames 2>/dev/null
}
_strata_jobs() {
  _strata_words "$(timeout 2 "${COMP_WORDS[0]}" list --json 2>/dev/null |
    grep -o '"name":"[^"]*"' | cut -d '"' -f 4)" "$1"
}
_strata_fields() {
  _strata_words "$_strata_paths" "$1"
}
_strata_assignments() {
  local i
  _strata_fields "$1"
  for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]+='='; done
  compopt -o nospace 2>/dev/null
}
)sh";

// The command that the words before the cursor name; "--option=" is put together again.
constexpr char kStart[] = R"sh(_strata() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at=strata i
  if [[ $cur == '=' ]]; then
    cur=
  elif [[ $prev == '=' && COMP_CWORD -ge 3 ]]; then
    prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$at ${COMP_WORDS[i]}" in
      )sh";

// What completes a value; "" when nothing can.
std::string Completer(const ArgumentHelp& argument) {
  switch (argument.kind) {
    case ValueKind::kFile:
      return "_strata_files -f \"$cur\"";
    case ValueKind::kFolder:
      return "_strata_files -d \"$cur\"";
    case ValueKind::kChoice:
      return absl::StrCat("_strata_words ", ShellQuote(absl::StrJoin(argument.choices, " ")),
                          " \"$cur\"");
    case ValueKind::kJob:
      return "_strata_jobs \"$cur\"";
    case ValueKind::kField:
      return "_strata_fields \"$cur\"";
    case ValueKind::kAssignment:
      return "_strata_assignments \"$cur\"";
    default:
      return "";
  }
}

// What may follow the command itself: its options, then its commands or its positional arguments.
std::string AfterCommand(const CommandHelp& command) {
  std::vector<std::string> options;
  for (const ArgumentHelp& option : command.options) options.push_back(option.names.back());
  std::string text = absl::StrCat("    ", ShellQuote(command.path), ")\n",
                                  "      if [[ $cur == -* ]]; then\n        _strata_words ",
                                  ShellQuote(absl::StrJoin(options, " ")), " \"$cur\"\n");
  std::vector<std::string> names;
  for (const CommandHelp& below : command.commands) names.push_back(below.name());
  std::string other;
  if (!names.empty()) {
    other = absl::StrCat("_strata_words ", ShellQuote(absl::StrJoin(names, " ")), " \"$cur\"");
  } else if (!command.positionals.empty()) {
    other = Completer(command.positionals[0]);
  }
  if (!other.empty()) absl::StrAppend(&text, "      else\n        ", other, "\n");
  return absl::StrCat(text, "      fi ;;\n");
}

}  // namespace

std::string BashCompletion(const CommandHelp& root, const std::vector<std::string>& fields) {
  std::string text = absl::StrCat(kHead, "_strata_paths=", ShellQuote(absl::StrJoin(fields, " ")),
                                  "\n", kStart, QuotedCommands(root, " | \\\n      "),
                                  ") at+=\" ${COMP_WORDS[i]}\" ;;\n    esac\n  done\n"
                                  "  case \"$at $prev\" in\n");
  VisitCommands(root, [&](const CommandHelp& command) {
    for (const ArgumentHelp& option : command.options) {
      if (option.kind == ValueKind::kNone) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names) {
        patterns.push_back(ShellQuote(absl::StrCat(command.path, " ", name)));
      }
      const std::string completer = Completer(option);
      absl::StrAppend(&text, "    ", absl::StrJoin(patterns, " | "), ") ", completer,
                      completer.empty() ? "" : "; ", "return ;;\n");
    }
  });
  absl::StrAppend(&text, "  esac\n  case \"$at\" in\n");
  VisitCommands(root, [&](const CommandHelp& command) { text += AfterCommand(command); });
  return absl::StrCat(text, "  esac\n}\ncomplete -F _strata strata\n");
}

}  // namespace strata
