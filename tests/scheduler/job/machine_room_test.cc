// Jobs that share servers whose memory they would overcommit: who waits, what is told, who goes on.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/job/job_spec.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "scheduler/cluster_state.h"
#include "tests/scheduler/sim_nodes.h"

namespace strata::scheduler {
namespace {

constexpr absl::Duration kLease = absl::Seconds(10);
constexpr uint64_t kMiB = uint64_t{1} << 20;

// A server with 1 GiB for jobs and two workers. Nobody works.
class Cluster {
 public:
  Cluster() {
    servers_.emplace("s0", SimServer("s0", sim_, &disk_));
    servers_.at("s0").Start(1);
    for (const char* name : {"w0", "w1"}) {
      workers_.emplace_back(name, sim_, &servers_);
      workers_.back().Start(1);
    }
    Restart();
    Sync(10);  // so that they are known
  }

  // A new scheduler on what the one before had recorded.
  void Restart() {
    state_ = std::make_unique<ClusterState>(kLease, ClusterId{0, 1});
    REQUIRE(state_->Restore(records_, now_).ok());
    Take();
  }

  absl::Status Submit(const std::string& name, const std::string& dram) {
    ClusterState::Submission s;
    s.uid = {0, next_uid_++};
    s.request_id = name;
    s.job.set_api_version("strata/v1");
    s.job.set_kind("TrainingJob");
    s.job.mutable_metadata()->set_name(name);
    JobSpec& spec = *s.job.mutable_spec();
    spec.mutable_data()->set_format("libfm");
    spec.mutable_data()->add_train("/data/train.libfm");
    spec.mutable_model()->set_type("lr");
    spec.mutable_training()->set_lanes(2);
    spec.mutable_training()->set_batch_size(1);
    spec.mutable_storage()->set_partitions(16);
    spec.mutable_storage()->set_dram_bytes_per_server(dram);
    REQUIRE(ResolveJob(s.job).ok());
    const auto job = state_->Submit(std::move(s), now_);
    Take();
    if (!job.ok()) return job.status();
    jobs_[name] = *job;
    Sync(10);
    return absl::OkStatus();
  }
  void Cancel(const std::string& name) {
    REQUIRE(state_->Cancel(jobs_.at(name), now_).ok());
    Take();
    Sync(10);
  }
  void Sync(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      now_ += kLease / 16;
      state_->Tick(now_);
      Take();
      SyncNode(servers_.at("s0"));
      for (SimWorker& worker : workers_) SyncNode(worker);
    }
  }

  JobStatus Status(const std::string& name) { return state_->Status(jobs_.at(name), now_); }
  const JobStateRecord& State(const std::string& name) {
    return state_->jobs().at(jobs_.at(name))->state();
  }
  std::string Condition(const std::string& name) {
    const JobCondition c = *Status(name).conditions().rbegin();
    return c.reason() + ": " + c.message();
  }
  bool Says(const std::string& name, const std::string& reason) {
    const JobStatus status = Status(name);
    return std::any_of(status.conditions().begin(), status.conditions().end(),
                       [&reason](const JobCondition& c) { return c.reason() == reason; });
  }
  NodeStatus Server() { return state_->Cluster().nodes(0); }
  std::vector<SimWorker>& workers() { return workers_; }
  uint64_t shard_bytes = 0;  // that the server reports of each of its jobs

 private:
  void Take() {
    for (MetadataChange& c : state_->TakeChanges()) {
      if (c.value) {
        records_[c.key] = *c.value;
      } else {
        records_.erase(c.key);
      }
    }
  }
  template <typename Node>
  void SyncNode(Node& node) {
    NodeReport report = node.Report();
    if (report.role() == SERVER) {
      report.set_memory_bytes(1024 * kMiB);
      report.set_memory_given(true);
      for (ServerJobReport& job : *report.mutable_server_jobs()) {
        job.add_shards()->set_dram_bytes(shard_bytes);
      }
    }
    const auto session = state_->Report(report, now_);
    REQUIRE(session.ok());
    Take();
    const auto directive = state_->Directive(node.name(), *session, false);
    REQUIRE(directive.ok());
    node.Act(*directive);
  }

  const SimJob sim_{.lanes = 2, .steps = 16};
  SimDisk disk_;
  std::map<std::string, SimServer> servers_;
  std::vector<SimWorker> workers_;
  std::map<std::string, std::string> records_;
  std::unique_ptr<ClusterState> state_;
  std::map<std::string, uint64_t> jobs_;
  uint64_t next_uid_ = 1;
  absl::Time now_ = absl::FromUnixSeconds(1767225600);
};

TEST_CASE("a job that would overcommit a server waits with the figures, until there is room",
          "[scheduler][room]") {
  Cluster cluster;
  REQUIRE(cluster.Submit("a", "600MiB").ok());
  CHECK(cluster.Status("a").state() == RUNNING);
  const MemoryNeed reserved = cluster.Status("a").reserved();
  CHECK(reserved.dram_bytes() > 600 * kMiB);
  CHECK(reserved.dram_bytes() < 700 * kMiB);
  CHECK(cluster.Server().room().dram_bytes() == 1024 * kMiB);
  CHECK(cluster.Server().reserved().dram_bytes() == reserved.dram_bytes());

  REQUIRE(cluster.Submit("b", "600MiB").ok());
  CHECK(cluster.State("b").phase() == WAITING);
  CHECK_FALSE(cluster.Status("b").has_reserved());
  CHECK(absl::StrContains(cluster.Condition("b"),
                          "WaitingForRoom: waiting for room: 1 servers wanted with 600.0 MiB"));
  CHECK(absl::StrContains(cluster.Condition("b"), "MiB of memory free of 1.0 GiB (held: job a 6"));
  // What is reserved follows from the records: a new scheduler knows it before servers speak.
  const int told = cluster.Status("b").conditions_size();
  cluster.Restart();
  CHECK(cluster.Server().reserved().dram_bytes() == reserved.dram_bytes());
  cluster.Sync(10);
  CHECK(cluster.State("b").phase() == WAITING);
  CHECK(cluster.Status("b").conditions_size() == told);

  REQUIRE(cluster.Submit("small", "100MiB").ok());
  CHECK(cluster.Status("small").state() == RUNNING);
  cluster.Cancel("a");
  CHECK(cluster.Status("b").state() == RUNNING);
  CHECK_FALSE(cluster.Status("a").has_reserved());
}

TEST_CASE("a job that no server could ever take is refused", "[scheduler][room]") {
  Cluster cluster;
  const absl::Status never = cluster.Submit("huge", "2GiB");
  CHECK(absl::IsFailedPrecondition(never));
  CHECK(absl::StrContains(never.message(), "asks for 2.0 GiB on each of 1 servers"));
  CHECK(absl::StrContains(never.message(), "1.0 GiB"));
  CHECK(cluster.Submit("all", "1GiB").ok());
  CHECK(cluster.Status("all").state() == RUNNING);
}

TEST_CASE("a job without a limit keeps its estimate, and no workers while it waits",
          "[scheduler][room]") {
  Cluster cluster;
  for (SimWorker& w : cluster.workers()) w.index_lines = 100'000'000;
  REQUIRE(cluster.Submit("guessed", "0").ok());
  // More than the server has; but it has the server alone.
  CHECK(cluster.Status("guessed").state() == RUNNING);
  CHECK(cluster.Status("guessed").reserved().dram_bytes() == 1024 * kMiB);
  CHECK(cluster.Says("guessed", "MemoryEstimated"));
  REQUIRE(cluster.Submit("next", "0").ok());
  CHECK(cluster.State("next").phase() == WAITING);
  CHECK(cluster.State("next").workers_size() == 0);
  CHECK(absl::StrContains(cluster.Condition("next"), "(an estimate, with "));
  CHECK(absl::StrContains(cluster.Condition("next"), "0 B of memory free of 1.0 GiB"));
  cluster.Sync(10);
  CHECK(cluster.State("next").phase() == WAITING);
  cluster.Cancel("guessed");
  CHECK(cluster.Status("next").state() == RUNNING);
}

TEST_CASE("rows that nobody thought of are counted when servers tell of them",
          "[scheduler][room]") {
  Cluster cluster;
  REQUIRE(cluster.Submit("grows", "0").ok());
  CHECK(cluster.Status("grows").state() == RUNNING);
  CHECK(cluster.Status("grows").reserved().dram_bytes() < 100 * kMiB);
  CHECK_FALSE(cluster.Says("grows", "MemoryEstimated"));  // little of the server
  cluster.shard_bytes = 900 * kMiB;
  cluster.Sync(2);
  CHECK(cluster.Status("grows").reserved().dram_bytes() > 900 * kMiB);
  REQUIRE(cluster.Submit("late", "200MiB").ok());
  CHECK(cluster.State("late").phase() == WAITING);
  // A limit is what is counted of a job that has one.
  cluster.Cancel("grows");
  CHECK(cluster.Status("late").reserved().dram_bytes() < 300 * kMiB);
}

}  // namespace
}  // namespace strata::scheduler
