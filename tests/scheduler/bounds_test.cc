// What a scheduler remembers does not grow with the jobs that ever were, or with how long they ran.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/strata/control.pb.h"
#include "scheduler/cluster_state.h"
#include "scheduler/job/news.h"
#include "tests/scheduler/sim_nodes.h"
#include "tests/scheduler/store/stored_records.h"

namespace strata::scheduler {
namespace {

constexpr absl::Duration kLease = absl::Seconds(10);
constexpr ClusterId kMine = {0, 1};
const absl::Time kStart = absl::FromUnixSeconds(1767225600);

using Store = std::map<std::string, std::string>;

void Save(ClusterState& state, Store& store) { ApplyChanges(state.TakeChanges(), store); }

size_t BytesOf(const Store& store, const std::string& part) {
  size_t bytes = 0;
  for (const auto& [key, value] : store) {
    if (absl::EndsWith(key, part)) bytes += value.size();
  }
  return bytes;
}

ClusterState::Submission Job(const std::string& name, JobUid uid, const std::string& mode) {
  ClusterState::Submission s;
  s.request_id = uid.text();
  s.uid = uid;
  s.job.mutable_metadata()->set_name(name);
  JobSpec& spec = *s.job.mutable_spec();
  spec.mutable_training()->set_mode(mode);
  spec.mutable_training()->set_lanes(1);
  spec.mutable_training()->set_batch_size(1);
  spec.mutable_training()->set_epochs(1);
  spec.mutable_replicas()->set_servers(1);
  spec.mutable_replicas()->set_workers(1);
  spec.mutable_storage()->set_partitions(16);
  spec.mutable_storage()->set_durability("logged");
  return s;
}

TEST_CASE("a scheduler forgets jobs that ended long ago", "[scheduler][bounds]") {
  ClusterState state(kLease, kMine);
  Store store;
  JobNews news([](const std::string&) {});
  const size_t jobs = 2 * ClusterState::kMaxFinishedJobs;
  for (size_t i = 0; i < jobs; ++i) {
    const uint64_t job = *state.Submit(Job("job", {1, i + 1}, "bsp"), kStart);
    REQUIRE(state.Cancel(job, kStart).ok());
    if (i % 100 != 0) continue;
    Save(state, store);
    news.Tell(state.jobs());
  }
  Save(state, store);
  news.Tell(state.jobs());
  CHECK(state.jobs().size() <= ClusterState::kMaxFinishedJobs + 1);
  CHECK(state.settled() <= ClusterState::kMaxFinishedJobs + 1);
  CHECK(news.jobs() == state.jobs().size());
  size_t records = 0;
  for (const auto& [key, value] : store) records += absl::StartsWith(key, "job/");
  CHECK(records <= 2 * (ClusterState::kMaxFinishedJobs + 1));  // spec and state
}

// One server, one worker and asynchronous jobs of many tasks.
class Busy {
 public:
  static constexpr uint32_t kTasks = 500;

  Busy() {
    servers_.emplace("s0", SimServer("s0", sim_, &disk_));
    servers_.at("s0").Start(1);
    worker_.index_tasks = kTasks;
    worker_.index_lines = 1;
    worker_.Start(2);
    REQUIRE(state.Restore({}, now).ok());
  }
  // One job, to its end; what its records take while it trains.
  size_t Train(uint64_t number) {
    const uint64_t job =
        *state.Submit(Job(absl::StrCat("job-", number), JobUid{2, number}, "async"), now);
    size_t most = 0;
    for (int round = 0; state.Status(job, now).state() != SUCCEEDED; ++round) {
      INFO(state.Status(job, now).DebugString());
      REQUIRE(round < 3000);
      Round();
      most = std::max(most, BytesOf(store, "/index") + BytesOf(store, "/tasks"));
    }
    for (int i = 0; i < 3; ++i) Round();  // nodes say that they closed it
    return most;
  }
  // The worker has evaluated these steps.
  void Evaluate(uint64_t first, uint64_t last) {
    NodeReport report = worker_.Report();
    REQUIRE(report.worker_jobs_size() == 1);
    for (uint64_t step = first; step <= last; ++step) {
      report.mutable_worker_jobs(0)->add_evaluations()->set_step(step);
    }
    REQUIRE(state.Report(report, now).ok());
  }
  void Round() {
    Sync(servers_.at("s0"));
    Sync(worker_);
    worker_.Work();
    now += absl::Milliseconds(20);
    state.Tick(now);
    Save(state, store);
    state.TakeFileWork();
  }

  ClusterState state{kLease, kMine};
  absl::Time now = kStart;
  Store store;

 private:
  template <typename Node>
  void Sync(Node& node) {
    const auto session = state.Report(node.Report(), now);
    REQUIRE(session.ok());
    const auto directive = state.Directive(node.name(), *session, false);
    REQUIRE(directive.ok());
    node.Act(*directive);
  }

  const SimJob sim_{.lanes = 1, .windows_per_task = 1};
  SimDisk disk_;
  std::map<std::string, SimServer> servers_;
  SimWorker worker_{"w0", sim_, &servers_};
};

TEST_CASE("of a job that is over the records hold what shows it, not its tasks",
          "[scheduler][bounds]") {
  Busy busy;
  const size_t most = busy.Train(1);
  CHECK(most > 4 * Busy::kTasks);  // the index of one alone
  const JobStatus before = busy.state.Status(1, busy.now);
  CHECK(before.total_examples() == Busy::kTasks);
  for (uint64_t job = 2; job <= 4; ++job) busy.Train(job);
  CHECK(BytesOf(busy.store, "/index") < 4 * 100);
  CHECK(BytesOf(busy.store, "/tasks") == 0);
  CHECK(BytesOf(busy.store, "/state") < 4 * 4000);
  CHECK(busy.state.settled() == 4);
  for (const auto& [id, job] : busy.state.jobs()) {
    CHECK(job->ledger() == nullptr);
    CHECK(job->index()->train().tasks_size() == 0);
    const JobStateRecord record = job->StateRecord();
    for (const CheckpointRecord& c : record.cuts().complete()) {
      CHECK(c.closed_tasks_size() == 0);
    }
  }
  // It is shown as before, also by a scheduler that begins with these records.
  ClusterState again(kLease, kMine);
  REQUIRE(again.Restore(busy.store, busy.now).ok());
  const auto check = [&](const ClusterState& state) {
    CHECK(state.Status(1, busy.now).SerializeAsString() == before.SerializeAsString());
    CHECK(state.Shards(1).has_shape());
  };
  check(busy.state);
  check(again);
}

// As those of earlier versions are.
TEST_CASE("whole records of jobs that are over lose what is of no use", "[scheduler][bounds]") {
  Busy busy;
  busy.Train(1);
  Store old = busy.store;
  JobIndexRecord index;
  index.mutable_train()->set_lines(Busy::kTasks);
  for (uint32_t i = 0; i < Busy::kTasks; ++i) index.mutable_train()->add_tasks()->set_lines(1);
  LedgerRecord ledger;
  ledger.set_total(Busy::kTasks);
  for (auto& [key, value] : old) {
    if (absl::EndsWith(key, "/index")) value = index.SerializeAsString();
  }
  for (const auto& [key, value] : busy.store) {
    if (!absl::EndsWith(key, "/index")) continue;
    old[key.substr(0, key.size() - 5) + "tasks"] = ledger.SerializeAsString();
  }
  ClusterState state(kLease, kMine);
  REQUIRE(state.Restore(old, busy.now).ok());
  CHECK(state.Status(1, busy.now).total_steps() == Busy::kTasks);
  Save(state, old);
  CHECK(BytesOf(old, "/index") < 100);
  CHECK(BytesOf(old, "/tasks") == 0);
  ClusterState again(kLease, kMine);
  REQUIRE(again.Restore(old, busy.now).ok());
  CHECK(again.Status(1, busy.now).total_steps() == Busy::kTasks);
}

TEST_CASE("the newest evaluations of a job are kept", "[scheduler][bounds]") {
  Busy busy;
  const uint64_t job = *busy.state.Submit(Job("job", {4, 1}, "async"), busy.now);
  for (int round = 0; busy.state.Status(job, busy.now).state() != RUNNING; ++round) {
    REQUIRE(round < 100);
    busy.Round();
  }
  busy.Round();
  for (uint64_t step = 1; step <= 5000; step += 100) busy.Evaluate(step, step + 99);
  const JobStatus status = busy.state.Status(job, busy.now);
  REQUIRE(status.evaluations_size() == 1024);
  CHECK(status.evaluations(0).step() == 5000 - 1023);
  CHECK(status.evaluations(1023).step() == 5000);
}

// Users who ask for a checkpoint and go away.
TEST_CASE("nothing is kept for those who wait for a checkpoint no more", "[scheduler][bounds]") {
  ClusterState::Submission submission = Job("job", {3, 1}, "async");
  submission.job.mutable_spec()->mutable_checkpoint()->set_directory("/c");
  Busy busy;
  const uint64_t job = *busy.state.Submit(std::move(submission), busy.now);
  for (int round = 0; busy.state.Status(job, busy.now).state() != RUNNING; ++round) {
    REQUIRE(round < 100);
    busy.Round();
  }
  const JobMachine& machine = *busy.state.jobs().at(job);
  for (int i = 0; i < 1000; ++i) {
    const auto ticket = busy.state.WantCheckpoint(job, busy.now);
    REQUIRE(ticket.ok());
    busy.state.ForgetTicket(job, *ticket);
  }
  CHECK(machine.tickets() == 0);
  const auto ticket = busy.state.WantCheckpoint(job, busy.now);
  REQUIRE(ticket.ok());
  REQUIRE(busy.state.Cancel(job, busy.now).ok());  // which answers
  CHECK(machine.tickets() == 1);
  busy.state.ForgetTicket(job, *ticket);
  CHECK(machine.tickets() == 0);
}

// Of a server that never comes back, its copies are nobody's any more.
TEST_CASE("a removal that was asked of a server goes with the server", "[scheduler][bounds]") {
  ClusterState state(kLease, kMine);
  NodeReport report;
  report.set_name("s0");
  report.set_role(SERVER);
  report.set_incarnation(1);
  report.set_data_address("s0");
  report.set_cores(1);
  for (uint64_t i = 1; i <= 50; ++i) {
    ServerJobReport* kept = report.add_server_jobs();
    kept->set_job(i);
    kept->set_job_uid(JobUid{5, i}.text());
    kept->set_cluster_id(ClusterId{0, 9}.text());
    kept->set_state(ServerJobReport::QUARANTINED);
  }
  REQUIRE(state.Report(report, kStart).ok());
  for (uint64_t i = 1; i <= 50; ++i) {
    SettleQuarantineRequest request;
    request.set_job_uid(JobUid{5, i}.text());
    request.set_node("s0");
    request.set_action(SettleQuarantineRequest::PURGE);
    REQUIRE(state.SettleQuarantine(request, kStart).ok());
  }
  CHECK(state.purging() == 50);
  const absl::Duration most = ClusterState::kForgetAfter + absl::Hours(1);
  for (absl::Duration t; t < 9 * most && state.purging() > 0; t += kLease / 16) {
    state.Tick(kStart + t);
  }
  CHECK(state.members().Find("s0") == nullptr);
  CHECK(state.purging() == 0);
}

}  // namespace
}  // namespace strata::scheduler
