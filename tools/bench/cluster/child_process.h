// The programs of this build as processes, for benchmarks.
#ifndef STRATA_TOOLS_BENCH_CLUSTER_CHILD_PROCESS_H_
#define STRATA_TOOLS_BENCH_CLUSTER_CHILD_PROCESS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace strata::bench {

// A child process; ended by its id, with SIGTERM, at the end.
class ChildProcess {
 public:
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(
      const std::vector<std::string>& command);
  // Starts it and waits for its end. INTERNAL: it ended with another code than 0.
  static absl::Status Run(const std::vector<std::string>& command);
  ~ChildProcess();
  // User and system seconds so far.
  double CpuSeconds() const;
  int pid() const { return pid_; }
  // Resident memory now; 0 when it has ended.
  uint64_t ResidentBytes() const;
  // By SIGKILL; waits for its end.
  void Kill();
  // By SIGTERM; waits for its end and returns how long that took.
  absl::Duration Terminate();

 private:
  explicit ChildProcess(int pid) : pid_(pid) {}
  int End(int signal);
  int pid_;  // 0: ended
};

// A binary of this build, by its path from the root of the build's output.
std::string BinaryBeside(const std::string& path);

// User and system seconds of this process, and its resident memory.
double OwnCpuSeconds();
uint64_t OwnResidentBytes();

// Waits for a daemon to write its address there. DEADLINE_EXCEEDED after ten seconds.
absl::StatusOr<std::string> ReadAddressFile(const std::string& path);

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_CLUSTER_CHILD_PROCESS_H_
