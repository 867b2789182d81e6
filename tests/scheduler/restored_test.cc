// A scheduler whose folder comes from an older copy (--restored): it hears how far its nodes are
// before it says anything, its numbers go on above all of theirs, and its jobs go on.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "scheduler/cluster_state.h"
#include "scheduler/nodes/hearing.h"
#include "tests/scheduler/sim_nodes.h"
#include "tests/scheduler/store/stored_records.h"

namespace strata::scheduler {
namespace {

constexpr absl::Duration kLease = absl::Seconds(10);
constexpr ClusterId kCluster = {0, 1};
constexpr uint64_t kSteps = 200;

using Store = std::map<std::string, std::string>;

// Two servers and two workers, which follow no term below one that they have heard of.
class Cluster {
 public:
  Cluster() {
    for (const char* name : {"s0", "s1"}) {
      servers_.emplace(name, SimServer(name, sim_, &disk));
      servers_.at(name).Start(++incarnation_);
    }
    for (SimWorker& worker : workers_) {
      worker.Start(++incarnation_);
      worker.index_lines = kSteps * sim_.lanes / 4;  // of each of four tasks
    }
    Begin({}, false);
  }

  // A scheduler's process on what is stored there.
  void Begin(Store store, bool restored) {
    store_ = std::move(store);
    state_ = std::make_unique<ClusterState>(kLease, kCluster);
    REQUIRE(state_->Restore(store_, now_).ok());
    removed.clear();
    if (restored) return state_->Hear(now_);
    state_->Started(now_, {1, ++starts_});
    DoFileWork();
  }
  uint64_t Submit(const std::string& name, JobUid uid) {
    ClusterState::Submission s;
    s.request_id = name;
    s.uid = uid;
    s.job.mutable_metadata()->set_name(name);
    JobSpec& spec = *s.job.mutable_spec();
    spec.mutable_training()->set_mode("bsp");
    spec.mutable_training()->set_lanes(sim_.lanes);
    spec.mutable_training()->set_batch_size(1);
    spec.mutable_training()->set_epochs(1);
    spec.mutable_replicas()->set_servers(1);
    spec.mutable_replicas()->set_workers(1);
    spec.mutable_storage()->set_partitions(16);
    spec.mutable_storage()->set_durability("logged");
    spec.mutable_checkpoint()->set_directory("/c/" + name);
    spec.mutable_checkpoint()->set_keep(1);
    const auto id = state_->Submit(std::move(s), now_);
    REQUIRE(id.ok());
    DoFileWork();
    return *id;
  }
  // All report, and the workers work where they may, until `done`.
  void Until(const std::function<bool()>& done) {
    for (int round = 0; !done(); ++round) {
      INFO(state_->Jobs(now_).DebugString());
      REQUIRE(round < 300);
      Round();
    }
  }
  void Round() {
    for (auto& [name, server] : servers_) Sync(server);
    for (SimWorker& worker : workers_) {
      Sync(worker);
      worker.Work();
    }
  }
  // One of the checkpoint's folders, the newest.
  std::string TakeCheckpoint(uint64_t job) {
    const std::string before = Newest(job);
    REQUIRE(state_->WantCheckpoint(job, now_).ok());
    Until([&] { return Newest(job) != before; });
    return Newest(job);
  }
  std::string Newest(uint64_t job) const {
    const JobStateRecord record = Job(job);
    const auto& complete = record.cuts().complete();
    return complete.empty() ? "" : complete.rbegin()->folder();
  }
  JobStateRecord Job(uint64_t job) const { return state_->jobs().at(job)->StateRecord(); }
  void RollBack(uint64_t job) {
    const uint64_t generation = Job(job).generation();
    for (auto& [name, server] : servers_) {
      server.Wipe();
      server.Kill();
      server.Start(++incarnation_);
    }
    Until([&] { return Job(job).generation() > generation && Job(job).phase() == TRAINING; });
  }
  void RestartNodes() {
    for (auto& [name, server] : servers_) {
      server.Kill();
      server.Start(++incarnation_);
    }
    for (SimWorker& worker : workers_) {
      worker.Kill();
      worker.Start(++incarnation_);
    }
  }
  // Copies of jobs that servers have.
  int held() const {
    int held = 0;
    for (const auto& [name, server] : servers_) held += server.Report().server_jobs_size();
    return held;
  }
  void Pass(absl::Duration time) {
    for (const absl::Time end = now_ + time; now_ < end;) {
      now_ = std::min(end, now_ + kLease / 16);
      Round();
      state_->Tick(now_);
      DoFileWork();
    }
  }
  // What the driver does: true once nodes are told things.
  bool MaySpeak(const std::map<uint64_t, std::vector<CheckpointRecord>>& found) {
    if (!state_->HeardEnough(now_)) return false;
    ClusterState::FoundByJob by_job;
    for (const auto& [job, complete] : found) {
      by_job.emplace(job, FoundInDirectory{.complete = complete});
    }
    state_->GoOn(by_job, now_, {1, ++starts_});
    DoFileWork();
    return true;
  }
  uint64_t QuarantinedOn(const std::string& uid) const {
    uint64_t count = 0;
    const ClusterStatus status = state_->Cluster();
    for (const NodeStatus& n : status.nodes()) {
      for (const QuarantinedJob& q : n.quarantined()) count += q.job_uid() == uid;
    }
    return count;
  }

  ClusterState& state() { return *state_; }
  const Store& store() const { return store_; }
  uint64_t heard() const { return heard_; }
  uint64_t sessions() const {
    uint64_t most = 0;
    for (const SimWorker& worker : workers_) most = std::max(most, worker.session());
    for (const auto& [name, server] : servers_) most = std::max(most, server.session());
    return most;
  }

  SimDisk disk;
  std::vector<std::string> removed;  // by this process of the scheduler
  uint64_t refused = 0;              // directives, by nodes

 private:
  template <typename Node>
  void Sync(Node& node) {
    if (!node.alive()) return;
    NodeReport report = node.Report();
    report.set_cluster_id(kCluster.text());
    report.set_term(heard_);
    report.set_start_id(heard_start_);
    const auto session = state_->Report(report, now_);
    DoFileWork();
    if (absl::IsUnauthenticated(session.status())) return node.Fenced();
    refused += absl::IsPermissionDenied(session.status());
    if (!session.ok()) return;
    const auto directive = state_->Directive(node.name(), *session, false);
    REQUIRE(directive.ok());
    REQUIRE(directive->term() >= heard_);
    // No term is two starts'.
    if (directive->term() == heard_) REQUIRE(directive->start_id() == heard_start_);
    heard_ = directive->term();
    heard_start_ = directive->start_id();
    node.Act(*directive);
  }
  void DoFileWork() {
    ApplyChanges(state_->TakeChanges(), store_);
    for (const FileWork& work : state_->TakeFileWork()) {
      if (const auto* write = std::get_if<WriteManifestWork>(&work)) {
        disk[write->folder].complete = true;
        state_->ManifestWritten(write->job, write->cut, absl::OkStatus(), now_);
        DoFileWork();
      } else if (const auto* remove = std::get_if<RemoveCheckpointWork>(&work)) {
        disk.erase(remove->folder);
        removed.push_back(remove->folder);
        state_->Removed(remove->job, remove->number, absl::OkStatus(), now_);
        DoFileWork();
      }
    }
  }

  const SimJob sim_ = {.lanes = 2, .steps = kSteps};
  std::map<std::string, SimServer> servers_;
  std::vector<SimWorker> workers_ = {{"w0", sim_, &servers_}, {"w1", sim_, &servers_}};
  Store store_;
  uint64_t incarnation_ = 0;
  uint64_t heard_ = 0;  // term
  std::string heard_start_;
  uint64_t starts_ = 0;
  std::unique_ptr<ClusterState> state_;
  absl::Time now_ = absl::FromUnixSeconds(1767225600);
};

// What a look into the folder finds.
CheckpointRecord Found(const std::string& folder, uint64_t step, uint64_t cut) {
  CheckpointRecord record;
  record.set_folder(folder);
  record.set_step(step);
  record.set_of_cut(cut);
  return record;
}

TEST_CASE("from an older copy a scheduler goes on above all that its nodes heard of",
          "[scheduler][restored]") {
  Cluster cluster;
  const uint64_t job = cluster.Submit("job", {0, 1});
  cluster.Until([&] { return cluster.Job(job).phase() == TRAINING; });
  const std::string first = cluster.TakeCheckpoint(job);
  const Store copy = cluster.store();
  // After the copy: another checkpoint in the place of the first, a roll-back, restarts, a job.
  const std::string second = cluster.TakeCheckpoint(job);
  const CheckpointRecord newest = *cluster.Job(job).cuts().complete().rbegin();
  REQUIRE(cluster.disk.count(first) == 0);
  cluster.RollBack(job);
  for (int i = 0; i < 3; ++i) cluster.Begin(cluster.store(), false);
  const uint64_t later = cluster.Submit("later", {0, 2});
  cluster.Until([&] { return cluster.Job(later).phase() == TRAINING; });
  const uint64_t term = cluster.heard(), session = cluster.sessions();
  const uint64_t generation = cluster.Job(job).generation();

  // Nobody follows the copy as it is, and it lets nobody in.
  cluster.Begin(copy, false);
  cluster.Round();
  CHECK(cluster.refused == 4);
  CHECK(cluster.heard() == term);

  cluster.Begin(copy, true);
  CHECK_FALSE(cluster.MaySpeak({}));
  cluster.Pass(kLease - kLease / 16);
  CHECK_FALSE(cluster.MaySpeak({}));
  CHECK(cluster.heard() == term);  // nobody was told anything
  CHECK(cluster.state().hearing());
  cluster.Pass(kLease / 16);
  REQUIRE(cluster.MaySpeak({{job, {Found(second, newest.step(), newest.cut())}}}));
  CHECK(cluster.state().term() > term);
  CHECK(cluster.Job(job).generation() > generation);
  CHECK(cluster.Job(job).restore_from() == second);
  CHECK(cluster.Job(job).cuts().next_cut() > newest.cut());
  cluster.Until([&] { return cluster.Job(job).phase() == OVER; });
  CHECK(cluster.Job(job).state() == SUCCEEDED);
  CHECK(cluster.Job(job).final_step() == kSteps);
  CHECK(cluster.heard() == cluster.state().term());
  CHECK(cluster.QuarantinedOn(JobUid{0, 2}.text()) == 1);
  // Numbers that others were given are given to nobody.
  CHECK(cluster.Submit("new", {0, 3}) > later);
  NodeReport stranger;
  stranger.set_name("w9");
  stranger.set_role(WORKER);
  stranger.set_incarnation(99);
  CHECK(*cluster.state().Report(stranger, absl::FromUnixSeconds(1767300000)) > session);
}

TEST_CASE("an older copy that counts up to a term that nodes heard of is told apart by its start",
          "[scheduler][restored][identity]") {
  Cluster cluster;
  const uint64_t job = cluster.Submit("job", {0, 1});
  cluster.Until([&] { return cluster.Job(job).phase() == TRAINING; });
  const Store copy = cluster.store();
  cluster.Begin(cluster.store(), false);
  const std::string first = cluster.TakeCheckpoint(job);
  const uint64_t later = cluster.Submit("later", {0, 2});
  cluster.Until([&] { return cluster.Job(later).phase() == TRAINING; });
  const uint64_t term = cluster.heard();
  // Nobody remembers a session, and nobody says what it has before it is asked.
  cluster.RestartNodes();

  // As it is, and also where it starts so often that its term is the highest of all.
  const int starts = GENERATE(1, 2, 5);
  CAPTURE(starts);
  Store store = copy;
  for (int i = 0; i < starts; ++i) {
    cluster.Begin(store, false);
    store = cluster.store();
    cluster.refused = 0;
    cluster.Round();
    CHECK(cluster.refused == 4);
  }
  CHECK(cluster.state().term() == term + static_cast<uint64_t>(starts) - 1);
  CHECK(cluster.heard() == term);
  CHECK(cluster.removed.empty());
  CHECK(cluster.held() == 2);

  cluster.Begin(store, true);
  cluster.Pass(kLease);
  REQUIRE(cluster.MaySpeak({}));
  cluster.Until([&] { return cluster.Job(job).phase() == OVER; });
  CHECK(cluster.Job(job).state() == SUCCEEDED);
  CHECK(cluster.heard() == cluster.state().term());
}

TEST_CASE("what an older copy says is to be removed stays", "[scheduler][restored]") {
  Cluster cluster;
  const uint64_t job = cluster.Submit("job", {0, 1});
  cluster.Until([&] { return cluster.Job(job).phase() == TRAINING; });
  const std::string first = cluster.TakeCheckpoint(job);
  Store copy = cluster.store();
  for (auto& [key, value] : copy) {
    if (!absl::EndsWith(key, "/state")) continue;
    JobStateRecord record;
    REQUIRE(record.ParseFromString(value));
    record.add_removing()->set_path(first);  // by now it may be another one of that name
    value = record.SerializeAsString();
  }
  const bool restored = GENERATE(true, false);
  CAPTURE(restored);
  cluster.Begin(copy, restored);
  if (restored) {
    cluster.Pass(kLease);
    REQUIRE(cluster.MaySpeak({}));
  }
  cluster.Pass(kLease / 4);
  CHECK(cluster.removed.empty() == restored);
  // Its folder was not seen: the copy's own words stand, and servers look for it.
  if (restored) CHECK(cluster.Job(job).restore_from() == first);
}

TEST_CASE("numbers are passed over that nodes may hold which nobody heard",
          "[scheduler][restored]") {
  const absl::Time end = absl::FromUnixSeconds(100);
  Hearing hearing(end);
  CHECK_FALSE(hearing.Over(end - absl::Milliseconds(1)));
  CHECK(hearing.Over(end));
  CHECK(hearing.TermAfter(4) == 5);
  NodeReport report;
  report.set_term(9);
  report.set_session(1000);
  ServerJobReport& job = *report.add_server_jobs();
  job.set_job(7);
  job.set_job_uid("u");
  job.set_generation(3);
  job.mutable_copy()->set_chain_epoch(12);
  hearing.Hear(report);
  hearing.Hear(NodeReport());
  CHECK(hearing.TermAfter(4) == 10);
  CHECK(hearing.TermAfter(20) == 21);
  CHECK(hearing.SessionFrom(5) == 1001 + Hearing::kSessions);
  CHECK(hearing.JobFrom(5) == 8 + Hearing::kJobs);
  CHECK(hearing.GenerationAfter("u", 1) == 3 + Hearing::kGenerations);
  CHECK(hearing.GenerationAfter("other", 1) == 1 + Hearing::kGenerations);
  CHECK(hearing.MapEpochFrom("u", 4) == 13);
  CHECK(hearing.MapEpochFrom("u", 40) == 40);
  CHECK(hearing.MapEpochFrom("other", 4) == 4);
}

}  // namespace
}  // namespace strata::scheduler
