// A scheduler's state with simulated nodes and one asynchronous job, of which cuts are taken.
#ifndef STRATA_TESTS_SCHEDULER_JOB_CUTS_CLUSTER_H_
#define STRATA_TESTS_SCHEDULER_JOB_CUTS_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "scheduler/cluster_state.h"
#include "tests/scheduler/sim_nodes.h"

namespace strata::scheduler {

struct CutsSetup {
  uint32_t servers = 1;
  bool memory = false;
  uint64_t bad_every = 0;
};

// Servers, two workers with a lane each, and an asynchronous job of one epoch.
class CutsCluster {
 public:
  static constexpr absl::Duration kLease = absl::Seconds(10);
  static constexpr uint64_t kWindows = 8;  // of a task
  static constexpr uint64_t kAll = 4 * kWindows;

  explicit CutsCluster(const CutsSetup& setup = {});

  // All nodes that live report and work, until `done`. Little time passes.
  void Until(const std::function<bool()>& done);
  void TakeCheckpoint();
  void WantCheckpoint();
  // By a worker that hears nothing meanwhile.
  void FinishTask(size_t worker);
  void RestartServer();
  void LoseWorkers();
  SimServer& server(const std::string& name) { return servers_.at(name); }
  // Servers are told of a cut, and one of the two workers, whose lane marks it and pushes on. Where
  // servers wait for the other lane's mark, that push is held back.
  void BeginCut();
  void SyncServers();
  void SyncAll();
  // Once the server is silent for a lease.
  void WorkerTakesName(const std::string& server);
  // Jobs without any files.
  void EndOthers(size_t jobs);
  bool remembers(uint64_t job) const { return state_.jobs().contains(job); }
  void SyncServer(const std::string& name);
  void RestartWorker(size_t worker);
  uint64_t cut() const {  // pending; 0: none
    return job().cuts().pending_size() == 0 ? 0 : job().cuts().pending(0).cut();
  }
  // What a server is told.
  uint64_t given_up() const;

  void StartWorkers();
  void Pass(absl::Duration time);

  size_t WindowsIn(const std::string& folder) const;
  JobStateRecord job() const { return state_.jobs().at(1)->StateRecord(); }
  uint64_t closed_tasks() const;
  JobStatus status() const { return state_.jobs().at(1)->Status(now_); }

  void Cancel();
  bool uses_checkpoints() const { return state_.jobs().at(1)->UsesCheckpoints(); }
  void LeftoversRemoved(uint64_t number, const absl::Status& status = absl::OkStatus());

  // Its files are being removed.
  void SayKept(const std::string& server, bool closes);
  std::vector<LockedJob> locked() const { return state_.LockedJobs({}); }
  void WriteHeld(const absl::Status& status);

  bool hold_manifests = false;
  std::vector<WriteManifestWork> held;
  std::string last_held;  // folder
  int manifests_to_fail = 0;
  std::vector<RemoveLeftoversWork> leftovers;  // that were asked for
  bool keep_leftovers = false;                 // and not removed

 private:
  template <typename Node>
  void Sync(Node& node);
  void DoFileWork();

  SimDisk disk_;
  std::map<std::string, SimServer> servers_;
  std::vector<SimWorker> workers_;
  uint64_t incarnation_ = 0, others_ = 0;
  ClusterState state_{kLease, ClusterId{0, 1}};
  absl::Time now_ = absl::FromUnixSeconds(1767225600);
};

void CheckEndsWhole(CutsCluster& cluster);

}  // namespace strata::scheduler

#endif  // STRATA_TESTS_SCHEDULER_JOB_CUTS_CLUSTER_H_
