// Runs a program to its end, or to a limit of time.
#ifndef STRATA_TOOLS_GPU_CHECK_CHILD_H_
#define STRATA_TOOLS_GPU_CHECK_CHILD_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace strata::gpu_check {

struct ChildOptions {
  std::vector<std::string> argv;         // argv[0]: the program's path
  std::vector<std::string> environment;  // "NAME=value", beside this process's
  std::string log_path;  // gets stdout, stderr and, at last, how it ended; overwritten
  double limit_seconds = 60;
};

struct ChildResult {
  int exit_code = -1;      // -1: a signal ended it
  int signal = 0;          // that signal
  bool timed_out = false;  // it was killed at its limit
  std::string output;      // what it said, the last 4 MiB when it is more
};

// Waits for it, without standard input, in a process group of its own: what it leaves running is
// killed with it, and all of it when the calling thread's process is killed. Any thread. kNotFound:
// there is no such program, or the log cannot be written. kResourceExhausted: no room for the log,
// or for a process.
absl::StatusOr<ChildResult> RunChild(const ChildOptions& options);

// "exit code 3", "killed by signal 11", "not done within 60 s".
std::string HowItEnded(const ChildResult& result, double limit_seconds);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_CHECK_CHILD_H_
