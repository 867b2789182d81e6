// Completion scripts, made from the tree of commands and from the fields of the job file.
//
// Each script knows all commands, options, choices and fields, and asks only for names of jobs:
// `strata list --json`, for at most two seconds.
#ifndef STRATA_TOOLS_CLI_DESCRIBE_COMPLETION_H_
#define STRATA_TOOLS_CLI_DESCRIBE_COMPLETION_H_

#include <functional>
#include <string>
#include <vector>

#include "tools/cli/describe/command_help.h"

namespace strata {

// `fields`: paths of the job file's fields (AllPaths of job_schema.h).
std::string BashCompletion(const CommandHelp& root, const std::vector<std::string>& fields);
std::string ZshCompletion(const CommandHelp& root, const std::vector<std::string>& fields);
std::string FishCompletion(const CommandHelp& root, const std::vector<std::string>& fields);

// Calls `visit` for the root and everything below it, parents first.
void VisitCommands(const CommandHelp& root, const std::function<void(const CommandHelp&)>& visit);

// `text` in single quotes for bash and zsh, and for fish.
std::string ShellQuote(const std::string& text);
std::string FishQuote(const std::string& text);

// Every command but the root, quoted, joined by `separator`.
std::string QuotedCommands(const CommandHelp& root, const std::string& separator);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_DESCRIBE_COMPLETION_H_
