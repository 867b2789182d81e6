// What can be typed, as plain values: what completion scripts and manual pages are made from.
// Tested by tests/tools/cli/describe/man_page_test.cc
// Tested by tests/tools/cli/describe/completion_test.cc
#ifndef STRATA_TOOLS_CLI_DESCRIBE_COMMAND_HELP_H_
#define STRATA_TOOLS_CLI_DESCRIBE_COMMAND_HELP_H_

#include <string>
#include <vector>

namespace strata {

// What an argument's value is, as far as completion can help.
enum class ValueKind {
  kNone,   // a flag
  kOther,  // a number or text of the user's own
  kFile,
  kFolder,
  kChoice,      // one of `choices`
  kJob,         // number or name of a job
  kField,       // path of a field of the job file
  kAssignment,  // PATH=VALUE
};

struct ArgumentHelp {
  std::vector<std::string> names;  // "-f", "--file"; none of a positional argument
  std::string value;               // "FILE"; "" of a flag
  std::string text;                // what it is for
  std::string standard;            // its default; "" when there is none, or the text says it
  std::vector<std::string> choices;
  ValueKind kind = ValueKind::kNone;
  bool required = false;
  bool repeated = false;  // takes several values
};

struct CommandHelp {
  std::string path;  // "strata checkpoint list"
  std::string text;
  std::vector<ArgumentHelp> options;
  std::vector<ArgumentHelp> positionals;  // in order
  std::vector<CommandHelp> commands;      // in the order of --help; hidden ones are left out

  // The last word of the path.
  std::string name() const { return path.substr(path.rfind(' ') + 1); }
};

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_DESCRIBE_COMMAND_HELP_H_
