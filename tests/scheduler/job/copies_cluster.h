// A scheduler's state and simulated servers that have copies of the shards of one job: they append,
// forward, copy to each other, die, come back, and say what they see.
#ifndef STRATA_TESTS_SCHEDULER_JOB_COPIES_CLUSTER_H_
#define STRATA_TESTS_SCHEDULER_JOB_COPIES_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "scheduler/cluster_state.h"
#include "scheduler/state/state.pb.h"
#include "tests/scheduler/sim_nodes.h"

namespace strata::scheduler {

// The shards of one of the job's servers, as one process has them. Of a log its end is enough: each
// is a prefix of its predecessor's.
struct SimCopy {
  ServerJobDirective told;
  std::string log_id;
  uint64_t generation = 0;
  uint64_t end = 0;
  uint64_t committed = 0;
  bool empty = false;    // it is to get an image
  bool opening = false;  // it recovers what it has
  std::string waits;     // what keeps it from that
  bool lost = false;
  std::string fails;         // lost, and it says FAILED of it, with this
  uint64_t known_epoch = 0;  // of the configuration that the copy after it knew as well
  uint64_t mark = 0;         // its end when that began
};

// What a server keeps on disk.
struct SimLog {
  std::string log_id;
  uint64_t generation = 0;
  uint64_t end = 0;
};

class CopiesCluster {
 public:
  static constexpr absl::Duration kLease = absl::Seconds(10);
  using Change = std::function<void(JobSpec&)>;

  // A server for each letter of `zones`, whose zone that is: s0, s1... and a job of `servers` with
  // two copies, or as `change` says.
  CopiesCluster(const std::string& zones, uint32_t servers, const Change& change = nullptr);

  // One round: all speak, servers append and forward.
  void Round();
  void Until(const std::function<bool()>& done);
  // Time passes, and all that live speak.
  void Pass(absl::Duration time);
  // The servers in another order; those that are not named do not speak.
  void SyncServers(const std::vector<std::string>& order);
  void Work();

  void AddServer(const std::string& name, const std::string& zone);
  void Kill(const std::string& name);
  void Start(const std::string& name);
  void Restart(const std::string& name) { Kill(name), Start(name); }
  // What is on its disk is gone.
  void Wipe(const std::string& name) { servers_.at(name).disk.clear(); }
  // Whether servers say that they saw each other's ends.
  void SeeEnds(bool seen) { ends_seen_ = seen; }
  // It reports LOST of what it has.
  void Lose(const std::string& name);
  // It reports FAILED of what it has.
  void Fail(const std::string& name, const std::string& why);
  // What it recovers from now on takes until SetSlow(name, false).
  void SetSlow(const std::string& name, bool slow);
  // The process opens what it has open anew, and says why, until it is not slow any more.
  void Reopen(const std::string& name, const std::string& why);
  // It names the process of `other` as one whose connection was closed, until that is called again
  // with false.
  void Accuse(const std::string& name, const std::string& other, bool accuses);
  void Stall(const std::string& name, bool stalls) { servers_.at(name).stalls = stalls; }
  void RestartScheduler();
  // What it has recorded by now, and its start with that, which is older than what servers know.
  std::map<std::string, std::string> records() const { return store_; }
  void RestartFrom(const std::map<std::string, std::string>& records, bool restored);

  bool IsAlive(const std::string& name) const { return servers_.at(name).alive; }
  // It lives, and nothing that it is to have is lost, or being opened.
  bool HoldsAll(const std::string& name) const;
  std::vector<std::string> names() const;
  JobStateRecord job() const { return state_->jobs().at(1)->StateRecord(); }
  // "s0,s1|s2+s3": full members, learners, who joins.
  std::string chain(int slot) const;
  uint64_t epoch(int slot) const { return job().servers(slot).chain().chain_epoch(); }
  // The last step that a worker could have seen committed, in this generation.
  uint64_t committed(int slot) const;
  std::string Says(const std::string& reason) const;
  size_t Events(const std::string& reason) const;
  JobShards Shards() const { return state_->Shards(1); }
  // What a server is told now, in bulk.
  NodeDirective Directive(const std::string& name);
  NodeDirective WorkerDirective();
  void Cancel() { REQUIRE_OK(state_->Cancel(1, now_)); }
  ClusterState& state() { return *state_; }
  absl::Time now() const { return now_; }
  // One report of the server, which reaches the scheduler now.
  NodeReport Report(const std::string& name) const;
  void Deliver(const NodeReport& report);
  absl::Status TryToDeliver(const NodeReport& report);

 private:
  static constexpr ClusterId kCluster = {0, 1};
  static void REQUIRE_OK(const absl::Status& status);

  struct Process {
    std::string zone;
    bool alive = false, stalls = false, slow = false;
    std::string accuses;
    uint64_t incarnation = 0, session = 0, seen = 0;
    std::map<uint32_t, SimCopy> copies;  // by slot
    std::map<uint32_t, SimLog> disk;
    // By server: the process that it was connected to.
    std::map<std::string, uint64_t> peers;
  };

  void Sync(const std::string& name);
  void SyncWorker();
  void Act(const std::string& name, const NodeDirective& directive);
  void Open(const std::string& name, const ServerJobDirective& d);
  SimCopy* Neighbour(const ChainMember& member, uint32_t slot, const SimCopy& of);
  bool AllCommitted(uint64_t generation, uint64_t step) const;
  void WorkCopy(const std::string& name, uint32_t slot, SimCopy& copy);
  void AddCopyReport(const std::string& name, uint32_t slot, const SimCopy& copy,
                     NodeReport& report) const;
  void Connect(Process& from, const std::string& to);
  void Record();

  SimJob sim_ = {.lanes = 2, .steps = 1'000'000};
  std::map<std::string, Process> servers_;
  std::map<std::string, SimServer> no_servers_;
  SimWorker worker_{"w0", sim_, &no_servers_};
  std::map<std::string, std::string> store_;
  std::map<std::pair<uint64_t, uint32_t>, uint64_t> committed_;  // by generation and slot
  bool ends_seen_ = true;
  uint64_t incarnation_ = 0, starts_ = 0;
  std::unique_ptr<ClusterState> state_ = std::make_unique<ClusterState>(kLease, kCluster);
  absl::Time now_ = absl::FromUnixSeconds(1767225600);
};

}  // namespace strata::scheduler

#endif  // STRATA_TESTS_SCHEDULER_JOB_COPIES_CLUSTER_H_
