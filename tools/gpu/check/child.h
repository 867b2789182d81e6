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
  // Of a child that was killed and is still there: it is inside a call of a driver that does not
  // come back. Nobody waits for it any longer then.
  double give_up_seconds = 20;
};

struct ChildResult {
  int exit_code = -1;      // -1: a signal ended it
  int signal = 0;          // that signal
  bool timed_out = false;  // it was killed at its limit
  bool given_up = false;   // and did not end: what it has and holds stays with it
  std::string output;      // what it said, the last 4 MiB when it is more
};

// Waits for it, at most limit_seconds and give_up_seconds, without standard input, in a process
// group of its own: what it leaves running is killed with it, and all of it when the calling
// thread's process is killed. Any thread. kNotFound: there is no such program, or the log cannot be
// written. kResourceExhausted: no room for the log, or for a process.
absl::StatusOr<ChildResult> RunChild(const ChildOptions& options);

// "exit code 3", "killed by signal 11", "not done within 60 s", "not done within 60 s, nor gone 20
// s after it was killed: stuck in the driver".
std::string HowItEnded(const ChildResult& result, const ChildOptions& options);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_CHECK_CHILD_H_
