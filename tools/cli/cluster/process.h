// Child processes, and knowing one again later by more than its number.
#ifndef STRATA_TOOLS_CLI_CLUSTER_PROCESS_H_
#define STRATA_TOOLS_CLI_CLUSTER_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace strata {

// A process as it can be recorded: its number is used again some day, its start time is not.
struct ProcessId {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // field 22 of /proc/PID/stat, clock ticks since boot

  friend bool operator==(const ProcessId&, const ProcessId&) = default;
};

// The running process `pid` (not a zombie). NOT_FOUND: there is none.
absl::StatusOr<ProcessId> FindProcess(pid_t pid);

// Whether exactly this process still runs.
bool IsRunning(const ProcessId& process);

// Starts `argv` (argv[0]: path of the program) in a session of its own, without standard input,
// with stdout and stderr appended to `log_path`. NOT_FOUND, PERMISSION_DENIED: the program or log.
absl::StatusOr<ProcessId> StartProcess(const std::vector<std::string>& argv,
                                       const std::string& log_path);

// Sends a signal if exactly this process still runs. The caller may be any process.
void Signal(const ProcessId& process, int signal);

// Waits until it has ended, at most `limit`; false when it still runs. For processes of others:
// looks every 10 ms.
bool WaitForEnd(const ProcessId& process, absl::Duration limit);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_CLUSTER_PROCESS_H_
