// Which checkpoint an asynchronous job ends with: the one that was taken when all was trained. And
// what it has counted by then, also after a roll-back.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/core/uid.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "scheduler/cluster_state.h"
#include "tests/scheduler/sim_nodes.h"

namespace strata::scheduler {
namespace {

constexpr absl::Duration kLease = absl::Seconds(10);
constexpr uint64_t kWindows = 8;  // of a task
constexpr uint64_t kAll = 4 * kWindows;

struct Setup {
  uint32_t servers = 1;
  bool memory = false;
  uint64_t bad_every = 0;
};

// Servers, two workers with a lane each, and an asynchronous job of one epoch.
class Cluster {
 public:
  explicit Cluster(const Setup& setup = {}) {
    const SimJob sim = {.lanes = 2,
                        .windows_per_task = kWindows,
                        .memory = setup.memory,
                        .bad_every = setup.bad_every};
    for (uint32_t i = 0; i < setup.servers; ++i) {
      const std::string name = "s" + std::to_string(i);
      servers_.emplace(name, SimServer(name, sim, &disk_));
      servers_.at(name).Start(++incarnation_);
    }
    for (const char* name : {"w0", "w1"}) {
      workers_.emplace_back(name, sim, &servers_);
      workers_.back().Start(++incarnation_);
    }
    REQUIRE(state_.Restore({}, now_).ok());
    ClusterState::Submission s;
    s.uid = {0, 1};
    s.request_id = "r";
    s.job.mutable_metadata()->set_name("job");
    JobSpec& spec = *s.job.mutable_spec();
    spec.mutable_training()->set_mode("async");
    spec.mutable_training()->set_lanes(sim.lanes);
    spec.mutable_training()->set_batch_size(1);
    spec.mutable_training()->set_epochs(1);
    spec.mutable_replicas()->set_servers(setup.servers);
    spec.mutable_replicas()->set_workers(2);
    spec.mutable_storage()->set_partitions(16);
    spec.mutable_storage()->set_durability(setup.memory ? "memory" : "logged");
    // None to spare.
    if (setup.bad_every > 0) spec.mutable_data()->set_max_bad_lines(kAll / setup.bad_every);
    spec.mutable_checkpoint()->set_directory("/c");
    spec.mutable_checkpoint()->set_keep(2);
    REQUIRE(state_.Submit(std::move(s), now_).ok());
    Until([&] { return job().phase() == TRAINING; });
  }

  // All nodes that live report and work, until `done`. Little time passes.
  template <typename Done>
  void Until(Done done) {
    for (int round = 0; !done(); ++round) {
      INFO(state_.Status(1, now_).DebugString());
      REQUIRE(round < 500);
      SyncServers();
      for (SimWorker& worker : workers_) Sync(worker);
      Pass(absl::Milliseconds(100));
      if (done()) return;
      for (SimWorker& worker : workers_) {
        if (worker.alive()) worker.Work();
      }
    }
  }
  void TakeCheckpoint() {
    REQUIRE(state_.WantCheckpoint(1, now_).ok());
    DoFileWork();
    Until([&] { return job().cuts().complete_size() == 1; });
    REQUIRE(WindowsIn(job().cuts().complete(0).folder()) < kAll);
  }
  void WantCheckpoint() { REQUIRE(state_.WantCheckpoint(1, now_).ok()); }
  // By a worker that hears nothing meanwhile.
  void FinishTask(size_t worker) {
    for (uint64_t window = 0; window < kWindows; ++window) workers_[worker].Work();
  }
  void RestartServer() {
    servers_.at("s0").Kill();
    servers_.at("s0").Start(++incarnation_);
  }
  void LoseWorkers() {
    for (SimWorker& worker : workers_) worker.Kill();
    for (int i = 0; i < 5; ++i) {
      Pass(kLease / 2);
      SyncServers();
    }
    const JobStateRecord now = job();
    for (const WorkerSlot& slot : now.workers()) REQUIRE(slot.name().empty());
  }
  SimServer& server(const std::string& name) { return servers_.at(name); }
  // Servers are told of a cut, and one of the two workers, whose lane marks it and pushes on. Where
  // servers wait for the other lane's mark, that push is held back.
  void BeginCut() {
    Until([&] { return status().examples() >= 4; });  // both are at work
    WantCheckpoint();
    SyncServers();
    Sync(workers_[0]);
    for (int i = 0; i < 3; ++i) workers_[0].Work();
  }
  void SyncServers() {
    for (auto& [name, server] : servers_) Sync(server);
  }
  void SyncAll() {
    SyncServers();
    for (SimWorker& worker : workers_) Sync(worker);
  }
  // Once the server is silent for a lease.
  void WorkerTakesName(const std::string& server) {
    servers_.at(server).Kill();
    Pass(kLease + kLease / 4);
    workers_.emplace_back(server, SimJob{.lanes = 2}, &servers_);
    workers_.back().Start(++incarnation_);
  }
  // Jobs without any files.
  void EndOthers(size_t jobs) {
    for (size_t i = 0; i < jobs; ++i) {
      ClusterState::Submission s;
      s.uid = {1, ++others_};
      s.job.mutable_metadata()->set_name("other");
      JobSpec& spec = *s.job.mutable_spec();
      spec.mutable_training()->set_mode("bsp");
      spec.mutable_training()->set_lanes(1);
      spec.mutable_replicas()->set_servers(1);
      spec.mutable_replicas()->set_workers(1);
      spec.mutable_storage()->set_partitions(16);
      const auto id = state_.Submit(std::move(s), now_);
      REQUIRE(id.ok());
      REQUIRE(state_.Cancel(*id, now_).ok());
    }
  }
  bool remembers(uint64_t job) const { return state_.jobs().contains(job); }
  void SyncServer(const std::string& name) { Sync(servers_.at(name)); }
  void RestartWorker(size_t worker) {
    workers_[worker].Kill();
    workers_[worker].Start(++incarnation_);
    Sync(workers_[worker]);
  }
  uint64_t cut() const {  // pending; 0: none
    return job().cuts().pending_size() == 0 ? 0 : job().cuts().pending(0).cut();
  }
  // What a server is told.
  uint64_t given_up() const {
    const Node* node = state_.members().Find("s0");
    NodeDirective d;
    state_.jobs().at(1)->AddServerDirective(*node, false, d);
    return d.server_jobs(0).given_up_through();
  }

  void StartWorkers() {
    for (SimWorker& worker : workers_) worker.Start(++incarnation_);
  }
  void Pass(absl::Duration time) {
    for (const absl::Time end = now_ + time; now_ < end;) {
      now_ = std::min(end, now_ + kLease / 16);
      state_.Tick(now_);
      DoFileWork();
    }
  }

  size_t WindowsIn(const std::string& folder) const {
    REQUIRE(disk_.at(folder).complete);
    return disk_.at(folder).files.at("s0").applied.size();
  }
  JobStateRecord job() const { return state_.jobs().at(1)->StateRecord(); }
  uint64_t closed_tasks() const {
    const LedgerRecord& ledger = *state_.jobs().at(1)->ledger();
    return ledger.closed_below() + static_cast<uint64_t>(ledger.closed_size());
  }
  JobStatus status() const { return state_.jobs().at(1)->Status(now_); }

  void Cancel() {
    REQUIRE(state_.Cancel(1, now_).ok());
    DoFileWork();
  }
  bool uses_checkpoints() const { return state_.jobs().at(1)->UsesCheckpoints(); }
  void LeftoversRemoved(uint64_t number, const absl::Status& status = absl::OkStatus()) {
    state_.LeftoversRemoved(1, number, status, now_);
    DoFileWork();
  }

  // Its files are being removed.
  void SayKept(const std::string& server, bool closes) {
    NodeReport report = servers_.at(server).Report();
    report.clear_server_jobs();
    ServerJobReport& kept = *report.add_server_jobs();
    kept.set_job(1);
    kept.set_job_uid(state_.jobs().at(1)->spec().job_uid());
    kept.set_state(ServerJobReport::KEPT);
    kept.set_closes(closes);
    REQUIRE(state_.Report(report, now_).ok());
    DoFileWork();
  }
  std::vector<LockedJob> locked() const { return state_.LockedJobs({}); }
  void WriteHeld(const absl::Status& status) {
    hold_manifests = false;
    for (const WriteManifestWork& work : std::exchange(held, {})) {
      last_held = work.folder;
      state_.ManifestWritten(work.job, work.cut, status, now_);
    }
    DoFileWork();
  }

  bool hold_manifests = false;
  std::vector<WriteManifestWork> held;
  std::string last_held;  // folder
  int manifests_to_fail = 0;
  std::vector<RemoveLeftoversWork> leftovers;  // that were asked for
  bool keep_leftovers = false;                 // and not removed

 private:
  template <typename Node>
  void Sync(Node& node) {
    if (!node.alive()) return;
    const auto session = state_.Report(node.Report(), now_);
    REQUIRE(session.ok());
    DoFileWork();
    const auto directive = state_.Directive(node.name(), *session, false);
    REQUIRE(directive.ok());
    node.Act(*directive);
  }

  void DoFileWork() {
    state_.TakeChanges();
    for (const FileWork& work : state_.TakeFileWork()) {
      if (const auto* left = std::get_if<RemoveLeftoversWork>(&work)) {
        leftovers.push_back(*left);
        if (!keep_leftovers) {
          state_.LeftoversRemoved(left->job, left->number, absl::OkStatus(), now_);
        }
      }
      const auto* write = std::get_if<WriteManifestWork>(&work);
      if (write == nullptr) continue;
      if (hold_manifests) {
        held.push_back(*write);
        continue;
      }
      const bool fails = manifests_to_fail > 0;
      manifests_to_fail -= fails;
      disk_[write->folder].complete = !fails;
      state_.ManifestWritten(write->job, write->cut,
                             fails ? absl::ResourceExhaustedError("disk full") : absl::OkStatus(),
                             now_);
      state_.TakeChanges();
    }
  }

  SimDisk disk_;
  std::map<std::string, SimServer> servers_;
  std::vector<SimWorker> workers_;
  uint64_t incarnation_ = 0, others_ = 0;
  ClusterState state_{kLease, ClusterId{0, 1}};
  absl::Time now_ = absl::FromUnixSeconds(1767225600);
};

void CheckEndsWhole(Cluster& cluster) {
  cluster.Until([&] { return cluster.job().phase() == OVER; });
  CHECK(cluster.job().state() == SUCCEEDED);
  CHECK(cluster.WindowsIn(cluster.job().final_checkpoint()) == kAll);
}

TEST_CASE("a job ends with a checkpoint of all its windows", "[scheduler][cuts]") {
  Cluster cluster;
  cluster.TakeCheckpoint();
  CheckEndsWhole(cluster);
}

// A look into a folder costs a manifest: a job would pay for all its checkpoints with each.
TEST_CASE("a checkpoint that is complete has nobody look into the earlier ones again",
          "[scheduler][cuts]") {
  Cluster cluster;
  for (const int complete : {1, 2}) {
    cluster.WantCheckpoint();
    cluster.Until([&] { return cluster.job().cuts().complete_size() == complete; });
    CHECK(cluster.leftovers.back().over.folders ==
          std::set<std::string>{cluster.job().cuts().complete(complete - 1).folder()});
  }
  CheckEndsWhole(cluster);
}

TEST_CASE("an earlier checkpoint does not stand in for the last one that cannot be written",
          "[scheduler][cuts]") {
  Cluster cluster;
  cluster.TakeCheckpoint();
  cluster.manifests_to_fail = 1;
  cluster.Until([&] { return cluster.manifests_to_fail == 0; });
  CHECK(cluster.job().phase() == CUTTING);
  cluster.Pass(absl::Seconds(1));
  CheckEndsWhole(cluster);
}

// A disk that is full, until there is room.
TEST_CASE("a job that is trained waits for its last checkpoint, and says why and where",
          "[scheduler][cuts]") {
  Cluster cluster({.servers = 2});
  cluster.Until([&] { return cluster.job().phase() == CUTTING; });
  const bool manifest = GENERATE(false, true);
  constexpr int kTimes = 4;
  if (manifest) {
    cluster.manifests_to_fail = kTimes;
  } else {
    cluster.server("s1").FailCuts(kTimes, absl::StatusCode::kResourceExhausted);
  }
  std::set<uint64_t> tried;
  cluster.Until([&] {
    if (cluster.cut() != 0) tried.insert(cluster.cut());
    return manifest ? cluster.manifests_to_fail == 0 : !cluster.server("s1").fails_cuts();
  });
  CHECK(cluster.job().phase() == CUTTING);
  cluster.Until([&] { return cluster.cut() == 0; });
  const JobCondition said = *cluster.status().conditions().rbegin();
  INFO(said.DebugString());
  CHECK(said.reason() == "CheckpointFailed");
  CHECK(absl::StrContains(said.message(), "spec.checkpoint.directory: /c/step-"));
  CHECK(absl::StrContains(said.message(),
                          manifest ? ": scheduler: disk full; " : ": s1: s1 has no file; "));
  CHECK(absl::StrContains(said.message(),
                          "; the job waits for this checkpoint, and tries again in "));
  CheckEndsWhole(cluster);
  CHECK(tried.size() == kTimes);  // marks of two tries never meet under one number
}

TEST_CASE("a cancel ends the wait for the last checkpoint", "[scheduler][cuts]") {
  Cluster cluster;
  cluster.Until([&] { return cluster.job().phase() == CUTTING; });
  cluster.manifests_to_fail = 1;
  cluster.Until([&] { return cluster.manifests_to_fail == 0 && cluster.cut() == 0; });
  cluster.Cancel();
  CHECK(cluster.job().phase() == OVER);
  CHECK(cluster.job().state() == CANCELLED);
}

TEST_CASE("a job whose last checkpoint no try can write fails, and says why", "[scheduler][cuts]") {
  Cluster cluster;
  cluster.Until([&] { return cluster.job().phase() == CUTTING; });
  cluster.server("s0").FailCuts(100, absl::StatusCode::kPermissionDenied);
  cluster.Until([&] { return cluster.job().phase() == OVER; });
  CHECK(cluster.job().state() == FAILED);
  const JobCondition said = *cluster.status().conditions().rbegin();
  INFO(said.DebugString());
  CHECK(said.reason() == "CheckpointFailed");
  CHECK(absl::EndsWith(said.message(), ": s0: s0 has no file"));
  CHECK(cluster.job().cuts().next_cut() == 4);
}

// Its servers' files are somebody's who holds the directory's lock: looked for until that was done.
TEST_CASE("what cuts left is looked for when they are given up, and when a job is over",
          "[scheduler][cuts]") {
  Cluster cluster({.servers = 2});
  cluster.leftovers.clear();
  cluster.BeginCut();
  CHECK(cluster.leftovers.empty());
  cluster.RestartWorker(0);
  REQUIRE(cluster.leftovers.size() == 1);
  CHECK(cluster.leftovers[0].directory == "/c");
  CHECK(cluster.leftovers[0].over.Has(Generation(1), 1));
  CHECK_FALSE(cluster.leftovers[0].over.Has(Generation(1), 2));
  CHECK_FALSE(cluster.leftovers[0].over.Has(Generation(2), 1));
  cluster.Until([&] { return cluster.cut() == 2; });
  const std::string given_up = *cluster.leftovers[0].over.folders.begin();
  cluster.leftovers.clear();
  cluster.Until([&] { return cluster.job().cuts().complete_size() == 1; });
  REQUIRE(cluster.leftovers.size() == 1);  // of a killed server, say
  CHECK(cluster.leftovers[0].over.Has(Generation(1), 2));
  CHECK(cluster.leftovers[0].over.folders.contains(given_up));
}

// What a server finishes until it has closed the job, nobody hears of.
TEST_CASE("the last look for leftovers comes when the servers have closed the job",
          "[scheduler][cuts]") {
  Cluster cluster({.servers = 2});
  cluster.keep_leftovers = true;
  cluster.BeginCut();
  cluster.RestartWorker(0);
  cluster.Cancel();
  const auto looks = [&] { return cluster.leftovers.size(); };
  REQUIRE(looks() == 1);
  const uint64_t before = cluster.leftovers[0].number;
  CHECK(cluster.uses_checkpoints());
  cluster.LeftoversRemoved(before);  // one from before the end
  CHECK(cluster.uses_checkpoints());
  const bool away = GENERATE(false, true);
  const bool removes = GENERATE(false, true);
  CAPTURE(away, removes);
  if (away && removes) return;
  if (removes) {  // what it keeps takes long to remove; it writes no more
    cluster.SayKept("s0", false);
    cluster.SayKept("s1", true);
    CHECK(looks() == 1);
    cluster.SayKept("s1", false);
  } else if (away) {
    cluster.Pass(kLease / 2 - absl::Milliseconds(10));
    CHECK(looks() == 1);
    cluster.Pass(absl::Milliseconds(20));
  } else {
    for (int i = 0; i < 4 && looks() == 1; ++i) cluster.SyncServers();
  }
  REQUIRE(looks() == 2);
  CHECK(cluster.leftovers[1].over.folders.empty());  // into all
  CHECK(cluster.uses_checkpoints());                 // so that its lock is kept
  // A look that fails is tried again; where that cannot help it is told.
  cluster.LeftoversRemoved(cluster.leftovers[1].number, absl::UnavailableError("EIO"));
  CHECK(looks() == 2);
  cluster.Pass(absl::Seconds(1));
  REQUIRE(looks() == 3);
  CHECK(cluster.uses_checkpoints());
  const auto [last, mends] = GENERATE(table<absl::StatusCode, bool>(
      {{absl::StatusCode::kPermissionDenied, false},
       {absl::StatusCode::kOk, true},
       {absl::StatusCode::kDataLoss, true},  // of a manifest: nobody cleans up there
       {absl::StatusCode::kUnimplemented, true}}));
  cluster.LeftoversRemoved(cluster.leftovers[2].number, absl::Status(last, "it is so"));
  CHECK_FALSE(cluster.uses_checkpoints());
  CHECK((cluster.status().conditions().rbegin()->reason() == "LeftoversStay") != mends);
  const std::vector<LockedJob> locked = cluster.locked();
  CHECK(locked.size() == (away ? 1 : 0));  // its servers may write on
  if (away) CHECK(locked[0].leaves_writers);
}

// The process that had the name may live, and write on: nobody hears of it.
TEST_CASE("who takes a server's name without the job's files there leaves a writer behind",
          "[scheduler][cuts]") {
  Cluster cluster({.servers = 2});
  enum class Comes : uint8_t {
    kAgain,
    kInAnotherContainer,
    kBare,
    kFromAnotherHost,
    kFromNowhere,
    kAsWorker
  };
  const Comes comes = GENERATE(Comes::kAgain, Comes::kInAnotherContainer, Comes::kBare,
                               Comes::kFromAnotherHost, Comes::kFromNowhere, Comes::kAsWorker);
  const bool after_the_end = GENERATE(false, true);
  CAPTURE(comes, after_the_end);
  const bool same = comes == Comes::kAgain || comes == Comes::kInAnotherContainer;
  if (after_the_end) cluster.Cancel();
  if (comes == Comes::kAsWorker) {
    cluster.WorkerTakesName("s0");
  } else {
    cluster.RestartServer();
    if (comes == Comes::kInAnotherContainer) cluster.server("s0").LimitBy("host/another");
    if (comes == Comes::kBare) cluster.server("s0").Wipe();
    if (comes == Comes::kFromAnotherHost) cluster.server("s0").MoveTo("another/1");
    if (comes == Comes::kFromNowhere) cluster.server("s0").MoveTo("");
  }
  cluster.SyncAll();
  if (!after_the_end) cluster.Cancel();
  for (int i = 0; i < 6; ++i) {
    cluster.SyncAll();
    cluster.Pass(absl::Milliseconds(100));
  }
  REQUIRE_FALSE(cluster.uses_checkpoints());
  const std::vector<LockedJob> locked = cluster.locked();
  REQUIRE(locked.size() == (same ? 0 : 1));
  if (!same) CHECK(locked[0].leaves_writers);
  // It is not remembered for that for ever.
  cluster.EndOthers(ClusterState::kMaxFinishedJobs + 1);
  CHECK_FALSE(cluster.remembers(1));
}

// Its own word was heard, and it restarted before the scheduler had acted on it.
TEST_CASE("a server that has said that it writes no more leaves no writer behind",
          "[scheduler][cuts]") {
  Cluster cluster;
  cluster.Cancel();
  cluster.SayKept("s0", false);
  cluster.RestartServer();
  cluster.server("s0").Wipe();
  for (int i = 0; i < 4; ++i) cluster.SyncAll();
  CHECK(cluster.locked().empty());
}

TEST_CASE("a job that is over is not forgotten before its lock is given back",
          "[scheduler][cuts]") {
  Cluster cluster({.servers = 2});
  cluster.Cancel();
  cluster.EndOthers(ClusterState::kMaxFinishedJobs + 1);
  const std::vector<LockedJob> locked = cluster.locked();
  REQUIRE(locked.size() == 1);
  CHECK(locked[0].job == 1);
  for (int i = 0; i < 6; ++i) {
    cluster.SyncServers();
    cluster.Pass(absl::Milliseconds(100));
  }
  REQUIRE(cluster.locked().empty());
  REQUIRE(cluster.remembers(1));
  cluster.EndOthers(1);
  CHECK_FALSE(cluster.remembers(1));
}

// What it said before its scheduler forgot that it was to close the job does not count.
TEST_CASE("a server that has the job open again may write again", "[scheduler][cuts]") {
  Cluster cluster({.servers = 2});
  cluster.keep_leftovers = true;
  cluster.Cancel();
  cluster.SayKept("s0", false);
  cluster.SayKept("s1", false);
  REQUIRE(cluster.leftovers.size() == 1);
  REQUIRE(cluster.uses_checkpoints());
  cluster.SayKept("s1", true);
  cluster.LeftoversRemoved(cluster.leftovers[0].number);
  REQUIRE_FALSE(cluster.uses_checkpoints());
  const std::vector<LockedJob> locked = cluster.locked();
  REQUIRE(locked.size() == 1);
  CHECK(locked[0].leaves_writers);
}

TEST_CASE("a manifest that is being written when its job ends is counted and kept as others are",
          "[scheduler][cuts]") {
  Cluster cluster;
  for (const int complete : {1, 2}) {
    cluster.WantCheckpoint();
    cluster.Until([&] { return cluster.job().cuts().complete_size() == complete; });
  }
  const std::string first = cluster.job().cuts().complete(0).folder();
  cluster.hold_manifests = true;
  cluster.WantCheckpoint();
  cluster.Until([&] { return !cluster.held.empty(); });
  cluster.Cancel();
  for (int i = 0; i < 4; ++i) cluster.SyncServers();
  REQUIRE(cluster.uses_checkpoints());
  const bool fails = GENERATE(false, true);
  cluster.WriteHeld(fails ? absl::UnavailableError("EIO") : absl::OkStatus());
  CHECK(cluster.uses_checkpoints() != fails);  // what is no longer kept is to be removed
  const CutBook book = cluster.job().cuts();
  CHECK(book.pending_size() == 0);
  CHECK(book.complete_size() == 2);  // keep: 2
  const std::string newest = book.complete(1).folder();
  CHECK(cluster.job().final_checkpoint() == newest);
  CHECK((newest == cluster.last_held) != fails);
  CHECK(cluster.job().removing_size() == (fails ? 0 : 1));
  if (!fails) CHECK(cluster.job().removing(0).path() == first);
}

TEST_CASE("an earlier checkpoint does not stand in for the last one when no worker is left",
          "[scheduler][cuts]") {
  Cluster cluster;
  cluster.TakeCheckpoint();
  cluster.Until([&] { return cluster.job().phase() == CUTTING; });
  REQUIRE(cluster.job().cuts().pending_size() == 1);
  cluster.LoseWorkers();
  CHECK(cluster.job().phase() == CUTTING);
  cluster.StartWorkers();
  CheckEndsWhole(cluster);
}

// A task that is closed between the beginning of a cut and its end is open in the checkpoint.
TEST_CASE("lines are counted once, whatever a roll-back has done again", "[scheduler][cuts]") {
  const uint64_t bad_every = GENERATE(0, 1, 2, 3);
  INFO(bad_every);
  const uint64_t bad = bad_every == 0 ? 0 : kAll / bad_every;
  Cluster cluster({.memory = true, .bad_every = bad_every});
  const auto counted = [&] {
    const JobStatus status = cluster.status();
    return status.examples() + status.bad_lines();
  };
  cluster.Until([&] { return counted() >= 4; });  // both workers are at work
  cluster.WantCheckpoint();
  cluster.FinishTask(0);
  cluster.Until([&] { return cluster.job().cuts().complete_size() == 1; });
  CHECK(cluster.closed_tasks() > 0);
  CHECK(cluster.job().cuts().complete(0).closed_tasks_size() == 0);
  CHECK(cluster.job().cuts().complete(0).bad_lines() == 0);
  CHECK(cluster.job().cuts().complete(0).examples() == 0);
  CHECK(counted() >= kWindows);
  cluster.RestartServer();
  cluster.Until([&] { return cluster.job().generation() == 2; });
  CHECK(counted() == 0);
  CheckEndsWhole(cluster);
  CHECK(cluster.job().rollbacks() == 1);
  CHECK(cluster.status().bad_lines() == bad);
  CHECK(cluster.status().examples() == kAll - bad);
}

// Servers drop what it had pushed; nobody drops what it had counted.
TEST_CASE("lines that a lost worker had read are counted once", "[scheduler][cuts]") {
  Cluster cluster({.bad_every = 2});
  cluster.Until([&] { return cluster.status().bad_lines() >= 5; });
  cluster.LoseWorkers();
  CHECK(cluster.status().bad_lines() == 0);
  cluster.StartWorkers();
  CheckEndsWhole(cluster);
  CHECK(cluster.status().bad_lines() == kAll / 2);
  CHECK(cluster.status().examples() == kAll / 2);
}

// Server 0 waits for the second lane's mark, and holds what the first one pushed after its own.
TEST_CASE("a cut that one server fails holds nobody at the other", "[scheduler][cuts]") {
  Cluster cluster({.servers = 2});
  cluster.server("s1").FailCuts(1);
  cluster.BeginCut();
  CHECK(cluster.given_up() == 0);
  cluster.SyncServers();  // server 1 says that it failed
  CHECK(cluster.cut() == 0);
  CHECK(cluster.given_up() == 1);
  CheckEndsWhole(cluster);
}

TEST_CASE("a cut that a server had no patience for is begun anew", "[scheduler][cuts]") {
  Cluster cluster({.servers = 2});
  cluster.BeginCut();
  cluster.server("s0").LosePatience();
  cluster.SyncServers();
  CHECK(cluster.given_up() == 1);
  cluster.Until([&] { return cluster.job().cuts().complete_size() == 1; });
  CHECK(cluster.job().cuts().complete(0).cut() == 2);
  CheckEndsWhole(cluster);
}

// Its marks are gone: the cut would never be complete.
TEST_CASE("a cut whose server began again is given up", "[scheduler][cuts]") {
  Cluster cluster({.servers = 2});
  cluster.BeginCut();
  cluster.RestartServer();
  cluster.Until([&] { return cluster.given_up() >= 1; });
  cluster.Until([&] { return cluster.job().cuts().complete_size() == 1; });
  CHECK(cluster.job().cuts().complete(0).cut() > 1);
  CheckEndsWhole(cluster);
}

// The lane's next host does other windows after the same mark.
TEST_CASE("a cut whose lane has got another host is given up", "[scheduler][cuts]") {
  Cluster cluster({.servers = 2});
  cluster.BeginCut();
  REQUIRE(cluster.cut() == 1);
  cluster.RestartWorker(0);
  CHECK(cluster.cut() != 1);  // in the same event
  CHECK(cluster.given_up() == 1);
  CheckEndsWhole(cluster);
  const JobStateRecord end = cluster.job();
  for (const CheckpointRecord& c : end.cuts().complete()) CHECK(c.cut() != 1);
}

// A server that hears nothing for a while meets no lane that was told of a cut it cannot know of:
// it would have to keep marks and pushes of whatever number anybody names.
TEST_CASE("a cut begins when every server has said that those before it are over",
          "[scheduler][cuts]") {
  Cluster cluster({.servers = 2});
  cluster.BeginCut();
  REQUIRE(cluster.cut() == 1);
  for (int i = 0; i < 3; ++i) {
    cluster.RestartWorker(0);  // its lane's cut is given up, and still wanted
    CHECK(cluster.cut() == 0);
    CHECK(cluster.given_up() == 1);
    for (int k = 0; k < 3; ++k) cluster.SyncServer("s0");
    CHECK(cluster.cut() == 0);  // server 1 has not spoken
  }
  cluster.SyncServer("s1");  // is told
  CHECK(cluster.cut() == 0);
  cluster.SyncServer("s1");  // says so
  CHECK(cluster.cut() == 2);
  CheckEndsWhole(cluster);
  CHECK(cluster.server("s0").impossible_cuts() == 0);
  CHECK(cluster.server("s1").impossible_cuts() == 0);
}

}  // namespace
}  // namespace strata::scheduler
