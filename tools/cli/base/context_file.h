// Which cluster commands talk to when nothing else says so: written by `strata up`.
#ifndef STRATA_TOOLS_CLI_BASE_CONTEXT_FILE_H_
#define STRATA_TOOLS_CLI_BASE_CONTEXT_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace strata {

struct Context {
  std::string scheduler;  // host:port
  std::string dir;        // absolute folder of the cluster that `strata up` started
};

// $XDG_CONFIG_HOME/strata/context.json, by default ~/.config/strata/context.json.
std::string ContextPath();

// NOT_FOUND: there is none (the text says what to do). INVALID_ARGUMENT: it is damaged.
absl::StatusOr<Context> ReadContext();

// Replaces the file, atomically.
absl::Status WriteContext(const Context& context);

// Removes the file if it speaks of the cluster in `dir`; OK when there is nothing to remove.
absl::Status RemoveContext(const std::string& dir);

// `given` if not empty, else the context's scheduler.
absl::StatusOr<std::string> SchedulerAddress(const std::string& given);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_BASE_CONTEXT_FILE_H_
