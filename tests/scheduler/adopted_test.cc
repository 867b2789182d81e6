// A scheduler that lost its records of a job makes it again of what servers noted: the job goes on
// with them, or from a checkpoint; and until it trains, nobody's copy is touched.
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
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "scheduler/cluster_state.h"
#include "scheduler/state/start.h"
#include "tests/scheduler/sim_nodes.h"

namespace strata::scheduler {
namespace {

constexpr absl::Duration kLease = absl::Seconds(10);
constexpr ClusterId kCluster = {0, 1};
constexpr JobUid kJob = {0, 7};
constexpr uint64_t kSteps = 200;

// Two servers with a job on both of them, and a worker; the scheduler knew it, and lost it.
class Cluster {
 public:
  // `daily`: it resumed with a second file, which alone it reads.
  explicit Cluster(bool daily = false, const std::string& init_from = "") {
    for (const char* name : {"s0", "s1"}) {
      servers_.emplace(name, SimServer(name, sim_, &disk));
      servers_.at(name).Start(++incarnation_);
    }
    worker.Start(++incarnation_);
    worker.index_lines = kSteps * sim_.lanes / 4;  // of each of four tasks
    Round();
    Save();
    const Store before = store_;
    ClusterState::Submission lost = Job("lost", kJob);
    if (!init_from.empty()) {
      disk[init_from].complete = true;
      disk[init_from].files["s0"];
      JobSpec& spec = *lost.job.mutable_spec();
      spec.mutable_data()->set_format("libfm");
      spec.mutable_model()->set_type("lr");
      spec.mutable_optimizer()->mutable_sparse()->set_type("sgd");
      spec.mutable_optimizer()->mutable_dense()->set_type("sgd");
      spec.mutable_model()->mutable_init_from()->set_checkpoint(init_from);
      lost.init_schema = *SchemaOf(spec, 3, 0);
    }
    if (daily) {
      worker.index_files = 2;
      worker.index_lines *= 2;
      data.add_files()->set_path("train");
      data.mutable_end()->set_tasks(7);
      lost.resume = true;
      *lost.resume_schema.emplace().mutable_data() = data;
    }
    state_->Submit(std::move(lost), now_).IgnoreError();
    Until([&] { return Step(1) >= 20; });
    REQUIRE(state_->WantCheckpoint(1, now_).ok());
    Until([&] { return state_->jobs().at(1)->StateRecord().cuts().complete_size() > 0; });
    own = {*state_->jobs().at(1)->StateRecord().cuts().complete().rbegin()};
    Until([&] { return Step(1) >= 60; });
    Begin(before, true);
    Round();
    now_ += kLease;
    state_->GoOn({}, now_, {1, ++starts_});
    Until([&] { return Quarantined() == 2; });
  }

  using Store = std::map<std::string, std::string>;
  void Begin(Store store, bool restored) {
    store_ = std::move(store);
    state_ = std::make_unique<ClusterState>(kLease, kCluster);
    REQUIRE(state_->Restore(store_, now_).ok());
    if (restored) return state_->Hear(now_);
    state_->Started(now_, {1, ++starts_});
    Save();
  }
  void RestartScheduler() { Begin(store_, false); }
  ClusterState::Submission Job(const std::string& name, JobUid uid) const {
    ClusterState::Submission s;
    s.request_id = uid.text();
    s.uid = uid;
    s.job.mutable_metadata()->set_name(name);
    JobSpec& spec = *s.job.mutable_spec();
    spec.mutable_training()->set_mode("bsp");
    spec.mutable_training()->set_lanes(sim_.lanes);
    spec.mutable_training()->set_batch_size(1);
    spec.mutable_training()->set_epochs(1);
    spec.mutable_replicas()->set_servers(2);
    spec.mutable_replicas()->set_workers(1);
    spec.mutable_storage()->set_partitions(16);
    spec.mutable_storage()->set_durability("logged");
    spec.mutable_checkpoint()->set_directory("/c/" + name);
    spec.mutable_checkpoint()->set_keep(1);
    return s;
  }
  void Until(const std::function<bool()>& done) {
    for (int round = 0; !done(); ++round) {
      INFO(state_->Jobs(now_).DebugString());
      REQUIRE(round < 300);
      Round();
    }
  }
  void Round() {
    for (auto& [name, server] : servers_) Sync(server);
    Sync(worker);
    worker.Work();
  }
  // With the lock of that number; 0: it waits for it.
  absl::Status Adopt(uint64_t lock = 1) {
    const absl::Status s = state_
                               ->Adopt(kJob.text(),
                                       {.own = own,
                                        .data = data,
                                        .held_up = lock == 0 ? "it waits" : "",
                                        .looked_lock = lock},
                                       now_)
                               .status();
    Save();
    return s;
  }
  // The lock is held, and what lies in the directory was looked at.
  void Held(uint64_t lock) {
    if (state_->LooksAgain(Id(), lock)) {
      state_->FoundAgain(Id(), FoundInDirectory{.lock = lock, .complete = own}, now_);
    }
    state_->OnLock({.kind = LockNews::Kind::kHeld, .job = Id(), .text = "", .number = lock}, now_);
    Save();
  }
  // Of the newest job of that name.
  uint64_t Id() const {
    JobRef ref;
    ref.set_name("lost");
    return state_->FindJob(ref).value_or(0);
  }
  JobStateRecord State() const { return state_->jobs().at(Id())->StateRecord(); }
  std::string Said() const { return state_->Status(Id(), now_).DebugString(); }
  uint64_t Step(uint64_t job) const { return state_->Status(job, now_).step(); }
  uint64_t Quarantined() const { return state_->quarantined(); }
  void Fail(const std::string& server) { servers_.at(server).Kill(); }
  void Silence() {
    for (absl::Duration t; t <= kLease + kLease / 4; t += kLease / 16) {
      now_ += kLease / 16;
      Round();
      state_->Tick(now_);
    }
  }
  // Copies that servers still have, in whatever state.
  int Copies() const {
    int copies = 0;
    for (const auto& [name, server] : servers_) {
      copies += server.alive() && server.Report().server_jobs_size() > 0;
    }
    return copies;
  }
  ClusterState& state() { return *state_; }
  absl::Time now() const { return now_; }

  SimDisk disk;
  std::vector<CheckpointRecord> own;
  TrainedData data;  // what is found of which files were read before

 private:
  template <typename Node>
  void Sync(Node& node) {
    if (!node.alive()) return;
    const auto session = state_->Report(node.Report(), now_);
    Save();
    if (absl::IsUnauthenticated(session.status())) return node.Fenced();
    if (!session.ok()) return;
    const auto directive = state_->Directive(node.name(), *session, false);
    REQUIRE(directive.ok());
    node.Act(*directive);
  }
  void Save() {
    for (const MetadataChange& c : state_->TakeChanges()) {
      if (c.value) {
        store_[c.key] = *c.value;
      } else {
        store_.erase(c.key);
      }
    }
    for (const FileWork& work : state_->TakeFileWork()) {
      const auto* const write = std::get_if<WriteManifestWork>(&work);
      if (write == nullptr) continue;
      disk[write->folder].complete = true;
      cuts.push_back(write->cut);
      state_->ManifestWritten(write->job, write->cut, absl::OkStatus(), now_);
      Save();
    }
  }

  const SimJob sim_ = {.lanes = 2, .steps = kSteps};
  std::map<std::string, SimServer> servers_;
  Store store_;
  uint64_t incarnation_ = 0, starts_ = 0;
  std::unique_ptr<ClusterState> state_ = std::make_unique<ClusterState>(kLease, kCluster);
  absl::Time now_ = absl::FromUnixSeconds(1767225600);

 public:
  std::vector<uint64_t> cuts;  // of manifests
  SimWorker worker{"w0", sim_, &servers_};
};

TEST_CASE("an adopted job goes on with what its servers have", "[scheduler][adoption]") {
  Cluster cluster;
  REQUIRE(cluster.Adopt().ok());
  CHECK(cluster.Id() == 1);
  const bool restarts = GENERATE(false, true);
  if (restarts) cluster.RestartScheduler();
  uint64_t first = 0;
  cluster.Until([&] {
    const bool over = cluster.State().phase() == OVER;
    if (!over) CHECK(cluster.Copies() == 2);  // at every moment
    if (first == 0 && cluster.State().phase() == TRAINING) first = cluster.Step(1);
    return over;
  });
  INFO(cluster.Said());
  CHECK(cluster.State().state() == SUCCEEDED);
  CHECK(cluster.State().final_step() == kSteps);
  CHECK(cluster.State().generation() == 1);
  CHECK(cluster.State().rollbacks() == 0);
  CHECK(first >= 60);
  // Numbers of cuts that the lost records gave out are given to none.
  CHECK(cluster.cuts.back() > uint64_t{1} << 20);
  cluster.Until([&] { return cluster.Copies() == 0; });
}

TEST_CASE("an adopted job ends where its input is another, and its copies stay",
          "[scheduler][adoption]") {
  Cluster cluster;
  cluster.worker.index_lines += 1;
  REQUIRE(cluster.Adopt().ok());
  cluster.Until([&] { return cluster.State().phase() == OVER; });
  CHECK(cluster.State().state() == FAILED);
  CHECK(absl::StrContains(cluster.Said(), "InputChanged"));
  for (int i = 0; i < 3; ++i) cluster.Round();
  CHECK(cluster.Copies() == 2);
  CHECK(cluster.Quarantined() == 2);
  cluster.worker.index_lines -= 1;
  cluster.RestartScheduler();
  cluster.Until([&] { return cluster.Quarantined() == 2; });
  REQUIRE(cluster.Adopt().ok());
  CHECK(cluster.Id() != 1);  // the failed one has its number
}

TEST_CASE("an adopted job that had resumed with more files reads the new ones alone",
          "[scheduler][adoption][daily]") {
  Cluster cluster(/*daily=*/true);
  SECTION("as the checkpoint says") {
    REQUIRE(cluster.Adopt().ok());
    if (GENERATE(false, true)) cluster.RestartScheduler();
    cluster.Until([&] { return cluster.State().phase() == OVER; });
    CHECK(cluster.State().state() == SUCCEEDED);
    CHECK(cluster.State().final_step() == kSteps);
  }
  SECTION("where nothing says so it ends, and stays kept") {
    cluster.data.mutable_end()->set_tasks(8);  // of another run
    REQUIRE(cluster.Adopt().ok());
    cluster.Until([&] { return cluster.State().phase() == OVER; });
    CHECK(absl::StrContains(cluster.Said(), "or the checkpoint is gone that said which files it"));
    CHECK(cluster.Copies() == 2);
  }
}

TEST_CASE("an adopted job that had started from another's checkpoint needs it no more",
          "[scheduler][adoption]") {
  Cluster cluster(/*daily=*/false, "/c/yesterday");
  cluster.own.clear();
  cluster.disk.erase("/c/yesterday");
  REQUIRE(cluster.Adopt().ok());
  cluster.Until([&] { return cluster.State().phase() == OVER; });
  INFO(cluster.Said());
  CHECK(cluster.State().state() == SUCCEEDED);
}

TEST_CASE("while an adopted job waits its copies are kept, also where it is cancelled",
          "[scheduler][adoption]") {
  Cluster cluster;
  cluster.worker.Kill();
  cluster.Silence();
  REQUIRE(cluster.Adopt().ok());
  for (int i = 0; i < 3; ++i) cluster.Round();
  CHECK(cluster.Quarantined() == 2);
  CHECK(cluster.Copies() == 2);
  const absl::Status again = cluster.Adopt();
  CHECK(absl::IsAlreadyExists(again));
  CHECK(absl::StrContains(again.message(), "job 1"));
  SettleQuarantineRequest purge;
  purge.set_action(SettleQuarantineRequest::PURGE);
  purge.set_job_uid(kJob.text());
  purge.set_node("s0");
  CHECK(
      absl::IsFailedPrecondition(cluster.state().SettleQuarantine(purge, cluster.now()).status()));
  REQUIRE(cluster.state().Cancel(1, cluster.now()).ok());
  for (int i = 0; i < 3; ++i) cluster.Round();
  CHECK(cluster.Copies() == 2);
  REQUIRE(cluster.state().SettleQuarantine(purge, cluster.now()).ok());
  cluster.Until([&] { return cluster.Copies() == 1; });
}

TEST_CASE("an adopted job goes on from its checkpoint where a server is missing",
          "[scheduler][adoption]") {
  Cluster cluster;
  cluster.Fail("s1");
  cluster.Silence();
  const auto own = std::exchange(cluster.own, {});
  CHECK(absl::IsFailedPrecondition(cluster.Adopt()));
  CHECK(cluster.Id() == 0);
  cluster.own = own;
  REQUIRE(cluster.Adopt().ok());
  cluster.Until([&] {
    return absl::StrContains(cluster.Said(), "WaitingForServers");  // it needs two
  });
  CHECK(cluster.State().generation() > 1000);
  CHECK(cluster.State().cuts().complete(0).folder() == own[0].folder());
}

TEST_CASE("an adopted job that waits for a server says what its user can do",
          "[scheduler][adoption]") {
  Cluster cluster;
  cluster.worker.Kill();  // nobody reads the input yet
  cluster.Silence();
  REQUIRE(cluster.Adopt().ok());
  cluster.Fail("s1");
  cluster.Silence();
  cluster.worker.Start(9);
  cluster.Until([&] { return absl::StrContains(cluster.Said(), "WaitingForServers"); });
  const std::string said = cluster.Said();
  INFO(said);
  for (const std::string& part :
       {std::string("goes on with s0, s1 alone"), std::string("with the --name and --dir that"),
        std::string("cancel the job and adopt it again"),
        "from checkpoint " + cluster.own[0].folder()}) {
    CAPTURE(part);
    CHECK(absl::StrContains(said, part));
  }
  // As it says.
  REQUIRE(cluster.state().Cancel(cluster.Id(), cluster.now()).ok());
  cluster.Round();
  REQUIRE(cluster.Adopt().ok());
}

TEST_CASE("an adopted job that waits for its lock begins from what is there when it has it",
          "[scheduler][adoption][lock]") {
  Cluster cluster;
  cluster.Fail("s1");
  cluster.Silence();
  const bool restarts = GENERATE(false, true), gone = GENERATE(false, true);
  CAPTURE(restarts, gone);
  REQUIRE(cluster.Adopt(/*lock=*/0).ok());
  for (int i = 0; i < 3; ++i) cluster.Round();
  CHECK(cluster.State().phase() == WAITING);
  if (restarts) {
    cluster.RestartScheduler();
    cluster.state().AwaitLocks();
  }
  const auto look = cluster.state().LooksAgain(cluster.Id(), 7);
  REQUIRE(look.has_value());
  CHECK(look->looks == JobMachine::Looks::kForOwn);
  CHECK(look->identity == JobIdentity{kCluster, kJob});
  // Another one was put there meanwhile.
  CheckpointRecord newer = cluster.own[0];
  newer.set_folder("/c/lost/newer");
  newer.set_step(newer.step() + 1);
  cluster.own = gone ? std::vector<CheckpointRecord>() : std::vector<CheckpointRecord>{newer};
  cluster.Held(7);
  CHECK_FALSE(cluster.state().LooksAgain(cluster.Id(), 7).has_value());
  if (gone) {
    CHECK(cluster.State().state() == FAILED);
    CHECK(absl::StrContains(cluster.Said(), "AdoptionUndone"));
    CHECK(cluster.Copies() == 1);
    return;
  }
  CHECK(cluster.State().cuts().complete_size() == 1);
  CHECK(cluster.State().cuts().complete(0).folder() == newer.folder());
  // And so it is under another number, as long as no server was told what to begin from.
  CHECK(cluster.state().LooksAgain(cluster.Id(), 8).has_value());
}

TEST_CASE("a name that a job of the cluster has is not taken by an adopted one",
          "[scheduler][adoption]") {
  Cluster cluster;
  const auto id = cluster.state().Submit(cluster.Job("lost", {0, 9}), cluster.now());
  REQUIRE(id.ok());
  const absl::Status refused = cluster.Adopt();
  CHECK(absl::IsAlreadyExists(refused));
  CHECK(absl::StrContains(refused.message(), absl::StrCat("job ", *id)));
  REQUIRE(cluster.state().Cancel(*id, cluster.now()).ok());
  CHECK(cluster.Adopt().ok());
}

}  // namespace
}  // namespace strata::scheduler
