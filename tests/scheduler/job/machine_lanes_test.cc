// What is counted as lost when lanes with copies of their own lose their host.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "scheduler/cluster_state.h"
#include "tests/scheduler/sim_nodes.h"

namespace strata::scheduler {
namespace {

constexpr absl::Duration kLease = absl::Seconds(10);

TrainingSpec Downpour(uint32_t n_push, uint32_t batch_size = 1) {
  TrainingSpec training;
  training.set_mode("downpour");
  training.set_lanes(4);
  training.set_batch_size(batch_size);
  training.set_epochs(1);
  training.set_n_fetch(1);
  training.set_n_push(n_push);
  return training;
}

// A server and two workers of a job whose tasks have these lines. Nobody works: lanes hold what
// they were given.
class Cluster {
 public:
  Cluster(const TrainingSpec& training, std::vector<uint32_t> lines)
      : lines_(std::move(lines)), sim_{.lanes = training.lanes(), .windows_per_task = 8} {
    servers_.emplace("s0", SimServer("s0", sim_, &disk_));
    servers_.at("s0").Start(1);
    for (const char* name : {"w0", "w1"}) {
      workers_.emplace_back(name, sim_, &servers_);
      workers_.back().Start(1);
    }
    REQUIRE(state_.Restore({}, now_).ok());
    ClusterState::Submission s;
    s.uid = {0, 1};
    s.request_id = "r";
    s.job.mutable_metadata()->set_name("job");
    JobSpec& spec = *s.job.mutable_spec();
    *spec.mutable_training() = training;
    spec.mutable_replicas()->set_servers(1);
    spec.mutable_replicas()->set_workers(2);
    spec.mutable_storage()->set_partitions(16);
    spec.mutable_storage()->set_durability("logged");
    REQUIRE(state_.Submit(std::move(s), now_).ok());
    for (int round = 0; round < 10; ++round) {
      SyncAll();
      Pass(absl::Seconds(1));
    }
    REQUIRE(state_.Status(1, now_).state() == RUNNING);
  }

  // The worker that hosts the lane is gone, and its lease ends.
  void LoseHostOf(uint32_t lane) {
    for (SimWorker& worker : workers_) {
      const auto& lanes = lanes_of_[worker.name()];
      if (std::find(lanes.begin(), lanes.end(), lane) != lanes.end()) worker.Kill();
    }
    for (int round = 0; round < 5; ++round) {
      Pass(kLease / 2);
      SyncAll();
    }
  }

  uint64_t LanesWithTasks() {
    uint64_t lanes = 0;
    for (const LedgerLane& lane : state_.jobs().at(1)->ledger()->lanes()) {
      lanes += lane.held_size() > 0;
    }
    return lanes;
  }
  uint64_t lost() { return state_.Status(1, now_).lost_local_steps(); }

 private:
  void Pass(absl::Duration time) {
    for (const absl::Time end = now_ + time; now_ < end;) {
      now_ = std::min(end, now_ + kLease / 16);
      state_.Tick(now_);
      state_.TakeChanges();
    }
  }

  template <typename Node>
  void Sync(Node& node) {
    if (!node.alive()) return;
    NodeReport report = node.Report();
    for (WorkerJobReport& job : *report.mutable_worker_jobs()) {
      if (job.has_train_index()) *job.mutable_train_index() = Index();
    }
    const auto session = state_.Report(report, now_);
    REQUIRE(session.ok());
    state_.TakeChanges();
    const auto directive = state_.Directive(node.name(), *session, false);
    REQUIRE(directive.ok());
    node.Act(*directive);
    for (const WorkerJobDirective& job : directive->worker_jobs()) {
      lanes_of_[node.name()] = {job.lanes().begin(), job.lanes().end()};
    }
  }
  void SyncAll() {
    Sync(servers_.at("s0"));
    for (SimWorker& worker : workers_) Sync(worker);
  }

  InputIndex Index() const {
    InputIndex index = SimWorker::Index(lines_.size(), 0);
    uint64_t all = 0;
    for (size_t i = 0; i < lines_.size(); ++i) {
      index.mutable_tasks(static_cast<int>(i))->set_lines(lines_[i]);
      all += lines_[i];
    }
    index.set_lines(all);
    return index;
  }

  const std::vector<uint32_t> lines_;
  const SimJob sim_;
  SimDisk disk_;
  std::map<std::string, SimServer> servers_;
  std::vector<SimWorker> workers_;
  std::map<std::string, std::vector<uint32_t>> lanes_of_;
  ClusterState state_{kLease, ClusterId{0, 1}};
  absl::Time now_ = absl::FromUnixSeconds(1767225600);
};

TEST_CASE("a lost host loses a window of each of its lanes at most", "[scheduler][lanes]") {
  const std::vector<uint32_t> tasks = {8, 8, 8, 8};
  const auto lost = [](const TrainingSpec& training, const std::vector<uint32_t>& lines) {
    Cluster cluster(training, lines);
    CHECK(cluster.LanesWithTasks() == 4);
    CHECK(cluster.lost() == 0);
    cluster.LoseHostOf(0);
    return cluster.lost();
  };
  CHECK(lost(Downpour(3), tasks) == 2 * 3);
  // A task ends what a lane has not pushed: no more batches than its lines make.
  CHECK(lost(Downpour(20), tasks) == 2 * 8);
  CHECK(lost(Downpour(20, 3), tasks) == 2 * 3);
  // The last task of a file may be short; which one a lane was in is not known.
  CHECK(lost(Downpour(20), {8, 8, 8, 2}) == 2 * 8);
  CHECK(lost(Downpour(20), {2, 2, 2, 1}) == 2 * 2);
  TrainingSpec easgd = Downpour(1);
  easgd.set_mode("easgd");
  easgd.set_tau(4);
  CHECK(lost(easgd, tasks) == 2 * 4);
  TrainingSpec async = Downpour(1);
  async.set_mode("async");
  CHECK(lost(async, tasks) == 0);
}

TEST_CASE("lanes without tasks have nothing to lose", "[scheduler][lanes]") {
  TrainingSpec warm = Downpour(3);
  warm.set_warm_start_steps(100);  // until then only lane 0 works
  const uint32_t lane = GENERATE(0u, 3u);
  Cluster cluster(warm, {8, 8, 8, 8});
  CHECK(cluster.LanesWithTasks() == 1);
  cluster.LoseHostOf(lane);
  CHECK(cluster.lost() == (lane == 0 ? 3 : 0));
}

TEST_CASE("losses add up", "[scheduler][lanes]") {
  // Enough for the lanes that wait for their next host: the others do not take what they had.
  Cluster cluster(Downpour(3), {8, 8, 8, 8, 8, 8, 8, 8});
  cluster.LoseHostOf(0);
  CHECK(cluster.lost() == 6);
  CHECK(cluster.LanesWithTasks() == 4);
  cluster.LoseHostOf(0);  // the other worker, which has all four lanes by now
  CHECK(cluster.lost() == 6 + 12);
}

}  // namespace
}  // namespace strata::scheduler
