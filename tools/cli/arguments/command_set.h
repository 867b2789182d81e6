// The commands of `strata` while CLI11 reads a command line. Seen only by the files that say what
// can be typed, because CLI11 is slow to compile.
// Tested by tests/tools/cli/arguments/command_line_test.cc
#ifndef STRATA_TOOLS_CLI_ARGUMENTS_COMMAND_SET_H_
#define STRATA_TOOLS_CLI_ARGUMENTS_COMMAND_SET_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tools/cli/base/options.h"

namespace strata {

// Holds the options of every command; one thread. The apps belong to the root app and must outlive
// their parsing.
class CommandSet {
 public:
  template <typename Options>
  struct Added {
    CLI::App* app;
    Options& options;  // lives as long as the set
  };

  // A subcommand of `parent`; its options become the command when it is on the line.
  template <typename Options>
  Added<Options> Add(CLI::App& parent, const char* name, const char* help) {
    auto options = std::make_shared<Options>();
    CLI::App* app = parent.add_subcommand(name, help);
    commands_.emplace_back(app, [options] { return Command(*options); });
    return {app, *options};
  }

  // What was on the line, after the root app has parsed it: the innermost, which was added after
  // the one that it belongs to.
  std::optional<Command> Chosen() const {
    for (auto it = commands_.rbegin(); it != commands_.rend(); ++it) {
      if (it->first->parsed()) return it->second();
    }
    return std::nullopt;
  }

 private:
  std::vector<std::pair<CLI::App*, std::function<Command()>>> commands_;
};

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_ARGUMENTS_COMMAND_SET_H_
