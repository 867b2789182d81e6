// A scheduler's state with simulated nodes and one job that begins, loses its shards and goes on.
#ifndef STRATA_TESTS_SCHEDULER_JOB_RECOVERY_CLUSTER_H_
#define STRATA_TESTS_SCHEDULER_JOB_RECOVERY_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "scheduler/cluster_state.h"
#include "scheduler/state/start.h"
#include "scheduler/state/state.pb.h"
#include "tests/scheduler/sim_nodes.h"

namespace strata::scheduler {

// A job at level `memory` on some of the cluster's servers, and one worker.
class RecoveryCluster {
 public:
  static constexpr absl::Duration kLease = absl::Seconds(10);
  static constexpr uint64_t kSteps = 40;

  // `change` may make another job of it; then it has just been indexed.
  // `stalls`: its lock does, so that it waits then.
  RecoveryCluster(uint32_t servers, uint32_t of_the_job, uint64_t cut_every = 0,
                  const std::function<void(ClusterState::Submission&)>& change = nullptr,
                  bool stalls = false);

  // What lies in the directory, under another lock than before.
  void FoundAgain(FoundInDirectory found) { state_->FoundAgain(1, std::move(found), now_); }
  // A look there ends so.
  void LookFails(const absl::Status& why) { state_->FoundAgain(1, why, now_); }
  // All report, and the worker works where it may, until `done`.
  void Until(const std::function<bool()>& done);
  void Train(uint64_t steps);
  // Its folder.
  std::string TakeCheckpoint();
  // Its worker holds this step open for a cut.
  void WantCutAt(uint64_t step);
  void Pass(absl::Duration time);
  void AddServer(const std::string& name);
  // It has nothing to do, and lives on.
  void WorkerComes(const std::string& name);
  // Its memory is gone: the job must go back.
  void Restart(const std::string& name);
  void RestartScheduler();
  // The scheduler that comes next finds that the job was submitted so.
  void RestartWith(const std::function<void(JobSpecRecord&)>& change);

  // What a server is told when it knows nothing yet.
  NodeDirective Directive(const std::string& name);
  NodeDirective WorkerDirective();

  SimServer& server(const std::string& name) { return servers_.at(name); }
  JobStateRecord job() const { return state_->jobs().at(1)->StateRecord(); }
  uint64_t step() const { return state_->Status(1, now_).step(); }
  std::vector<std::string> names() const;
  // The newest condition of that reason, "" if there is none; and as an event.
  std::string Says(const std::string& reason) const;
  size_t Events(const std::string& reason) const;
  void CheckSucceeds();

  Manifest manifest;  // of the newest checkpoint
  SimDisk disk;

 private:
  static constexpr ClusterId kCluster = {0, 1};

  template <typename Node>
  void Sync(Node& node);
  void SyncAll();
  void DoFileWork();

  const SimJob sim_ = {.lanes = 2, .steps = kSteps, .memory = true};
  std::map<std::string, SimServer> servers_;
  SimWorker worker_{"w0", sim_, &servers_};
  std::vector<SimWorker> idle_;
  std::map<std::string, std::string> store_;
  uint64_t incarnation_ = 0;
  std::unique_ptr<ClusterState> state_ = std::make_unique<ClusterState>(kLease, kCluster);
  absl::Time now_ = absl::FromUnixSeconds(1767225600);
};

// Makes the job one of deepfm over libfm.
JobSpec DeepFm(ClusterState::Submission& s);
// The schema of such a job over data of so many fields.
Schema SchemaFor(const JobSpec& spec, uint32_t fields);

}  // namespace strata::scheduler

#endif  // STRATA_TESTS_SCHEDULER_JOB_RECOVERY_CLUSTER_H_
