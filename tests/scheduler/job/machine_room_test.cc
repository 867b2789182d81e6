// Jobs that share servers whose memory they would overcommit: who waits, what is told, who goes on.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
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
#include "tests/scheduler/store/stored_records.h"

namespace strata::scheduler {
namespace {

constexpr absl::Duration kLease = absl::Seconds(10);
constexpr uint64_t kMiB = uint64_t{1} << 20;

// A server with 1 GiB for jobs, later more of them, and two workers. Nobody works.
class Cluster {
 public:
  explicit Cluster(bool with_server = true) {
    if (with_server) AddServer("s0");
    for (const char* name : {"w0", "w1"}) {
      workers_.emplace_back(name, sim_, &servers_);
      workers_.back().Start(1);
    }
    Restart();
    Sync(10);  // so that they are known
  }

  void AddServer(const std::string& name) {
    servers_.emplace(name, SimServer(name, sim_, &disk_));
    servers_.at(name).Start(1);
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
    if (!vocabulary.empty()) {
      spec.mutable_data()->set_format("csv");
      spec.mutable_data()->mutable_columns()->set_label("y");
      for (const char* column : {"a", "b", "c"}) {
        FieldConfig& field = *spec.add_fields();
        field.set_name(column);
        field.set_kind("categorical");
        field.mutable_vocabulary()->set_file(vocabulary);
      }
    }
    spec.mutable_model()->set_type("lr");
    spec.mutable_training()->set_lanes(2);
    spec.mutable_training()->set_batch_size(1);
    spec.mutable_storage()->set_partitions(16);
    spec.mutable_storage()->set_dram_bytes_per_server(dram);
    spec.mutable_storage()->set_directory(storage_directory);
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
      for (auto& [name, server] : servers_) {
        if (silent.count(name) == 0) SyncNode(server);
      }
      for (SimWorker& worker : workers_) SyncNode(worker);
    }
  }

  void StandStill(absl::Duration gap) { now_ += gap; }

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
  std::string ServerLost(const std::string& name) {
    const JobStatus status = Status(name);
    for (const JobCondition& c : status.conditions()) {
      if (c.reason() == "ServerLost") return c.message();
    }
    return "";
  }
  NodeStatus Server() { return state_->Cluster().nodes(0); }
  std::vector<SimWorker>& workers() { return workers_; }
  std::string storage_directory;  // of jobs that are submitted
  std::string vocabulary;         // of all of their fields; its values are its letters
  uint64_t disk_bytes = 0;        // that were given to each server
  uint64_t shard_bytes = 0;       // that servers report of each of their jobs
  bool one_machine = false;       // servers have 1 GiB together, not each
  bool one_disk = false;          // and disk_bytes, of which `files` are of jobs
  uint64_t file_bytes = 0;        // that servers report of each of their jobs
  uint64_t files = 0;
  bool indexing = false;         // workers do not come to the end of the input
  std::set<std::string> silent;  // servers

 private:
  void Take() { ApplyChanges(state_->TakeChanges(), records_); }
  template <typename Node>
  void SyncNode(Node& node) {
    NodeReport report = node.Report();
    if (report.role() == SERVER) {
      report.set_memory_bytes(1024 * kMiB);
      report.set_memory_given(!one_machine);
      report.set_disk_bytes(disk_bytes);
      report.set_disk_given(!one_disk);
      if (one_disk) report.set_disk_id("d");
      if (one_machine) report.set_machine_id("m");
      for (ServerJobReport& job : *report.mutable_server_jobs()) {
        job.add_shards()->set_dram_bytes(shard_bytes);
        job.set_disk_bytes(file_bytes);
        report.set_disk_job_bytes(report.disk_job_bytes() + file_bytes);
      }
      if (one_disk) report.set_disk_bytes(disk_bytes - files + report.disk_job_bytes());
    }
    for (WorkerJobReport& job : *report.mutable_worker_jobs()) {
      if (indexing) job.clear_train_index();
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

TEST_CASE("disk of a folder elsewhere is not counted, and the job says so", "[scheduler][room]") {
  Cluster cluster;
  cluster.disk_bytes = kMiB;
  REQUIRE(cluster.Submit("here", "1MiB").ok());
  CHECK(cluster.Status("here").state() == RUNNING);
  CHECK(cluster.Status("here").reserved().disk_bytes() == kMiB);
  CHECK_FALSE(cluster.Says("here", "DiskNotCounted"));
  REQUIRE(cluster.Submit("beside", "1MiB").ok());
  CHECK(cluster.State("beside").phase() == WAITING);
  CHECK(absl::StrContains(cluster.Condition("beside"), "0 B of disk free of 1.0 MiB"));
  cluster.storage_directory = "/elsewhere";
  REQUIRE(cluster.Submit("elsewhere", "1MiB").ok());
  CHECK(cluster.Status("elsewhere").state() == RUNNING);
  CHECK(cluster.Status("elsewhere").reserved().disk_bytes() == 0);
  CHECK(cluster.Says("elsewhere", "DiskNotCounted"));
}

TEST_CASE("a job whose fields have vocabularies keeps rows for their values alone",
          "[scheduler][room]") {
  Cluster cluster;
  cluster.vocabulary = "values";
  for (SimWorker& w : cluster.workers()) w.index_lines = 100'000'000;
  REQUIRE(cluster.Submit("known", "0").ok());
  CHECK(cluster.Status("known").state() == RUNNING);
  CHECK(cluster.Status("known").reserved().dram_bytes() < 100 * kMiB);
  CHECK_FALSE(cluster.Says("known", "MemoryEstimated"));
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

TEST_CASE("a job that was there before its servers, and fits none of them, ends",
          "[scheduler][room]") {
  Cluster cluster(/*with_server=*/false);
  REQUIRE(cluster.Submit("huge", "2GiB").ok());
  cluster.Sync(30);
  CHECK(absl::StartsWith(cluster.Condition("huge"), "WaitingForServers: "));
  cluster.AddServer("s0");
  cluster.Sync(10);  // another may be about to come
  CHECK(absl::StartsWith(cluster.Condition("huge"), "WaitingForRoom: "));
  cluster.Sync(10);
  CHECK(cluster.Status("huge").state() == FAILED);
  CHECK(absl::StartsWith(cluster.Condition("huge"), "NoRoom: spec.storage.dramBytesPerServer"));
  CHECK(absl::StrContains(cluster.Condition("huge"), "asks for 2.0 GiB on each of 1 servers"));
}

TEST_CASE("a scheduler that stood still has not seen that a job fits no server",
          "[scheduler][room]") {
  Cluster cluster(/*with_server=*/false);
  REQUIRE(cluster.Submit("huge", "2GiB").ok());
  cluster.AddServer("s0");
  cluster.Sync(4);
  cluster.StandStill(20 * kLease);
  cluster.Sync(4);
  CHECK(cluster.State("huge").phase() == WAITING);
}

TEST_CASE("a server that joins a machine has what jobs of its neighbours leave of it",
          "[scheduler][room]") {
  Cluster cluster(/*with_server=*/false);
  cluster.one_machine = true;
  cluster.AddServer("s0");
  cluster.Sync(4);
  REQUIRE(cluster.Submit("a", "600MiB").ok());
  CHECK(cluster.Status("a").state() == RUNNING);
  cluster.AddServer("s1");
  cluster.Sync(4);
  CHECK(cluster.Server().room().dram_bytes() == 512 * kMiB);
  REQUIRE(cluster.Submit("b", "450MiB").ok());  // fits its share
  CHECK(cluster.State("b").phase() == WAITING);
  CHECK(absl::StrContains(cluster.Condition("b"), "jobs on servers beside it "));
  REQUIRE(cluster.Submit("c", "300MiB").ok());
  CHECK(cluster.Status("c").state() == RUNNING);
}

TEST_CASE("what the rows of a guessed job take stays taken when its server's share shrinks",
          "[scheduler][room]") {
  Cluster cluster(/*with_server=*/false);
  cluster.one_machine = true;
  cluster.AddServer("s0");
  cluster.Sync(4);
  REQUIRE(cluster.Submit("grows", "0").ok());
  cluster.shard_bytes = 900 * kMiB;
  cluster.AddServer("s1");
  cluster.Sync(4);
  CHECK(cluster.Status("grows").reserved().dram_bytes() > 800 * kMiB);
  REQUIRE(cluster.Submit("late", "300MiB").ok());
  CHECK(cluster.State("late").phase() == WAITING);
}

TEST_CASE("files of a job stay taken when its server's share of the disk shrinks",
          "[scheduler][room]") {
  Cluster cluster(/*with_server=*/false);
  for (SimWorker& w : cluster.workers()) w.index_lines = 100'000'000;
  cluster.one_disk = true;
  cluster.disk_bytes = 1024 * kMiB;
  cluster.AddServer("s0");
  cluster.Sync(4);
  REQUIRE(cluster.Submit("early", "1MiB").ok());
  CHECK(cluster.Status("early").reserved().disk_bytes() == 1024 * kMiB);
  cluster.file_bytes = cluster.files = 900 * kMiB;
  cluster.AddServer("s1");
  cluster.Sync(4);
  CHECK(cluster.Server().room().disk_bytes() == 512 * kMiB);
  CHECK(cluster.Status("early").reserved().disk_bytes() == 900 * kMiB);
  REQUIRE(cluster.Submit("late", "1MiB").ok());
  CHECK(cluster.State("late").phase() == WAITING);
  CHECK(absl::StrContains(cluster.Condition("late"),
                          "s1 has 124.0 MiB of disk free of 512.0 MiB (held: jobs on servers "
                          "beside it 388.0 MiB)"));
}

TEST_CASE("a job is told whether what it keeps is an estimate", "[scheduler][room]") {
  Cluster cluster;
  REQUIRE(cluster.Submit("guessed", "0").ok());
  REQUIRE(cluster.Submit("limited", "1MiB").ok());
  CHECK_FALSE(cluster.Says("guessed", "MemoryEstimated"));  // little of the server
  CHECK(cluster.Status("guessed").estimated_rows() > 0);
  CHECK(cluster.Status("limited").estimated_rows() == 0);
  cluster.Cancel("guessed");
  CHECK(cluster.Status("guessed").estimated_rows() == 0);
}

TEST_CASE("a job that is over keeps its room until its servers have dropped it",
          "[scheduler][room]") {
  Cluster cluster;
  REQUIRE(cluster.Submit("a", "600MiB").ok());
  REQUIRE(cluster.Submit("b", "600MiB").ok());
  cluster.silent.insert("s0");
  cluster.Cancel("a");
  CHECK(cluster.State("b").phase() == WAITING);
  CHECK(absl::StrContains(cluster.Condition("b"), "(held: job a (closing) 6"));
  CHECK(cluster.Server().reserved().dram_bytes() > 600 * kMiB);
  CHECK_FALSE(cluster.Status("a").has_reserved());
  cluster.Restart();
  CHECK(cluster.Server().reserved().dram_bytes() > 600 * kMiB);
  cluster.silent.clear();
  cluster.Sync(10);
  CHECK(cluster.Status("b").state() == RUNNING);
}

TEST_CASE("of a lost server's job is told who has no room to take its place", "[scheduler][room]") {
  Cluster cluster;
  REQUIRE(cluster.Submit("a", "600MiB").ok());
  cluster.AddServer("s1");
  cluster.Sync(4);
  REQUIRE(cluster.Submit("b", "600MiB").ok());
  CHECK(cluster.Status("b").state() == RUNNING);
  cluster.silent.insert("s0");
  cluster.Sync(30);
  CHECK(absl::StrContains(cluster.ServerLost("a"), " is silent since "));
  CHECK(absl::StrContains(cluster.ServerLost("a"), "; waiting for room: 1 servers wanted"));
  CHECK(absl::StrContains(cluster.ServerLost("a"), "(held: job b 6"));
}

TEST_CASE("a job keeps no workers while it waits for servers", "[scheduler][room]") {
  Cluster cluster;
  cluster.indexing = true;
  REQUIRE(cluster.Submit("a", "100MiB").ok());
  CHECK(cluster.State("a").workers_size() == 1);
  cluster.silent.insert("s0");
  cluster.Sync(30);
  cluster.indexing = false;
  cluster.Sync(4);
  CHECK(absl::StartsWith(cluster.Condition("a"), "WaitingForServers: "));
  CHECK(cluster.State("a").phase() == WAITING);
  CHECK(cluster.State("a").workers_size() == 0);
  cluster.silent.clear();
  cluster.Sync(10);
  CHECK(cluster.Status("a").state() == RUNNING);
}

}  // namespace
}  // namespace strata::scheduler
