// What `strata up` keeps under its folder:
//   cluster.json        how many of what, and where the programs are (written by up)
//   state.json          which processes run (written by the supervisor on each change)
//   starting            held by the `up` that starts it
//   lock                held by the supervisor as long as it lives
//   logs/NAME.log       what each process says; supervisor.log too
//   pids/NAME.pid       its process number
//   certs/              its CA, and certificates of all processes and of the user
//   NAME/               its own folder: scheduler, server-0, ..., worker-0, ...
// Tested by tests/tools/cli/cluster/supervisor_test.cc
#ifndef STRATA_TOOLS_CLI_CLUSTER_CLUSTER_DIR_H_
#define STRATA_TOOLS_CLI_CLUSTER_CLUSTER_DIR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/cli/cluster/process.h"

namespace strata {

// What is to run.
struct ClusterConfig {
  std::string bin_dir;  // the three programs; "": beside this one
  uint32_t servers = 1;
  uint32_t workers = 1;
  std::vector<std::string> devices;         // UUID of each server's GPU; none: they have none
  std::vector<std::string> worker_devices;  // of each worker; none: they look for one
  std::vector<std::string> data_roots;      // of all; none: jobs use any path
  bool insecure = false;                    // without TLS
  std::vector<std::string> zones;           // of each server; none: each is a zone
};

// What runs.
struct ProcessState {
  std::string name;
  ProcessId id;
  uint32_t restarts = 0;
  std::string trouble;  // why it does not run now; "" when it runs
};

struct ClusterState {
  ProcessId supervisor;
  std::string scheduler;  // host:port; "" until it listens
  std::vector<ProcessState> processes;
};

class ClusterDir {
 public:
  // `dir` is made absolute. Nothing is touched.
  explicit ClusterDir(const std::string& dir);

  const std::string& path() const { return path_; }
  std::string LogPath(const std::string& name) const;
  std::string PidPath(const std::string& name) const;
  std::string ProcessPath(const std::string& name) const;
  std::string AddressPath() const;
  std::string CertsPath() const;

  // Makes the folders. PERMISSION_DENIED and the like name the path.
  absl::Status Make() const;

  // Locks against a second cluster in this folder until the process ends.
  // ALREADY_EXISTS: it is held.
  absl::Status Lock() const;
  // The same against another `strata up` in this folder, from before it changes anything there.
  absl::Status LockStart() const;
  // Whether a supervisor holds the lock now.
  bool IsLocked() const;

  absl::Status WriteConfig(const ClusterConfig& config) const;
  absl::StatusOr<ClusterConfig> ReadConfig() const;
  absl::Status WriteState(const ClusterState& state) const;
  // NOT_FOUND: nothing was started here.
  absl::StatusOr<ClusterState> ReadState() const;
  void RemoveState() const;

 private:
  std::string path_;
};

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_CLUSTER_CLUSTER_DIR_H_
