// What a job starts from after it lost its shards: a checkpoint that one server cannot read, that
// none can, that is not there, and none at all.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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
namespace {

constexpr absl::Duration kLease = absl::Seconds(10);
constexpr ClusterId kCluster = {0, 1};
constexpr uint64_t kSteps = 40;

// A job at level `memory` on some of the cluster's servers, and one worker.
class Cluster {
 public:
  // `change` may make another job of it; then it has just been indexed.
  // `stalls`: its lock does, so that it waits then.
  Cluster(uint32_t servers, uint32_t of_the_job, uint64_t cut_every = 0,
          const std::function<void(ClusterState::Submission&)>& change = nullptr,
          bool stalls = false) {
    for (uint32_t i = 0; i < servers; ++i) AddServer(absl::StrCat("s", i));
    worker_.Start(++incarnation_);
    worker_.index_files = 2;
    worker_.index_lines = kSteps * sim_.lanes / 4;  // of each of four tasks
    REQUIRE(state_->Restore({}, now_).ok());
    for (auto& [name, server] : servers_) Sync(server);
    Sync(worker_);
    ClusterState::Submission s;
    s.uid = {0, 1};
    s.job.mutable_metadata()->set_name("job");
    JobSpec& spec = *s.job.mutable_spec();
    spec.mutable_training()->set_mode("bsp");
    spec.mutable_training()->set_lanes(sim_.lanes);
    spec.mutable_training()->set_batch_size(1);
    spec.mutable_training()->set_epochs(1);
    spec.mutable_replicas()->set_servers(of_the_job);
    spec.mutable_replicas()->set_workers(1);
    spec.mutable_storage()->set_partitions(16);
    spec.mutable_storage()->set_durability("memory");
    spec.mutable_checkpoint()->set_directory("/c");
    spec.mutable_checkpoint()->set_keep(5);
    spec.mutable_checkpoint()->set_every_steps(cut_every);
    if (change) change(s);
    REQUIRE(state_->Submit(std::move(s), now_).ok());
    if (stalls) {
      state_->OnLock({.kind = LockNews::Kind::kStalls, .job = 1, .text = "it stalls"}, now_);
    }
    Until([&] {
      const bool indexed = state_->jobs().at(1)->index().has_value() || job().phase() == OVER;
      return job().phase() == TRAINING || (change && indexed);
    });
  }

  // What lies in the directory, under another lock than before.
  void FoundAgain(FoundInDirectory found) { state_->FoundAgain(1, std::move(found), now_); }

  // All report, and the worker works where it may, until `done`.
  void Until(const std::function<bool()>& done) {
    for (int round = 0; !done(); ++round) {
      INFO(state_->Status(1, now_).DebugString());
      REQUIRE(round < 200);
      SyncAll();
      worker_.Work();
    }
  }
  void Train(uint64_t steps) {
    const uint64_t to = step() + steps;
    Until([&] { return step() >= to; });
  }
  // Its folder.
  std::string TakeCheckpoint() {
    const int before = job().cuts().complete_size();
    REQUIRE(state_->WantCheckpoint(1, now_).ok());
    Until([&] { return job().cuts().complete_size() > before; });
    return job().cuts().complete(before).folder();
  }
  // Its worker holds this step open for a cut.
  void WantCutAt(uint64_t step) {
    NodeReport report = worker_.Report();
    report.mutable_worker_jobs(0)->set_wants_cut_at(step);
    REQUIRE(state_->Report(report, now_).ok());
  }
  void Pass(absl::Duration time) {
    for (const absl::Time end = now_ + time; now_ < end;) {
      now_ = std::min(end, now_ + kLease / 16);
      SyncAll();
      state_->Tick(now_);
      DoFileWork();
    }
  }
  void AddServer(const std::string& name) {
    servers_.emplace(name, SimServer(name, sim_, &disk));
    servers_.at(name).Start(++incarnation_);
  }
  // It has nothing to do, and lives on.
  void WorkerComes(const std::string& name) {
    idle_.emplace_back(name, sim_, &servers_);
    idle_.back().Start(++incarnation_);
  }
  // Its memory is gone: the job must go back.
  void Restart(const std::string& name) {
    servers_.at(name).Kill();
    servers_.at(name).Start(++incarnation_);
  }
  void RestartScheduler() {
    DoFileWork();
    state_ = std::make_unique<ClusterState>(kLease, kCluster);
    REQUIRE(state_->Restore(store_, now_).ok());
  }

  // The scheduler that comes next finds that the job was submitted so.
  void RestartWith(const std::function<void(JobSpecRecord&)>& change) {
    DoFileWork();
    std::string& stored = store_.at("job/00000000000000000001/spec");
    JobSpecRecord record;
    REQUIRE(record.ParseFromString(stored));
    change(record);
    stored = record.SerializeAsString();
    RestartScheduler();
  }

  // What a server is told when it knows nothing yet.
  NodeDirective Directive(const std::string& name) {
    const auto session = state_->Report(servers_.at(name).Report(), now_);
    REQUIRE(session.ok());
    const auto directive = state_->Directive(name, *session, false);
    REQUIRE(directive.ok());
    return *directive;
  }

  NodeDirective WorkerDirective() {
    NodeReport report = worker_.Report();
    report.set_seen_version(0);
    const auto session = state_->Report(report, now_);
    REQUIRE(session.ok());
    const auto directive = state_->Directive(report.name(), *session, false);
    REQUIRE(directive.ok());
    return *directive;
  }

  SimServer& server(const std::string& name) { return servers_.at(name); }
  JobStateRecord job() const { return state_->jobs().at(1)->StateRecord(); }
  uint64_t step() const { return state_->Status(1, now_).step(); }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    const JobStateRecord record = job();
    for (const ServerSlot& slot : record.servers()) names.push_back(slot.name());
    return names;
  }
  // The newest condition of that reason, "" if there is none; and as an event.
  std::string Says(const std::string& reason) const {
    const JobStateRecord record = job();
    for (int i = record.conditions_size() - 1; i >= 0; --i) {
      if (record.conditions(i).reason() != reason) continue;
      const GetEventsReply events = state_->Events(0, 1, 0);
      CHECK(std::any_of(events.events().begin(), events.events().end(), [&](const Event& e) {
        return e.reason() == reason && e.message() == record.conditions(i).message();
      }));
      return record.conditions(i).message();
    }
    return "";
  }
  size_t Events(const std::string& reason) const {
    const GetEventsReply all = state_->Events(0, 1, 0);
    return static_cast<size_t>(std::count_if(all.events().begin(), all.events().end(),
                                             [&](const Event& e) { return e.reason() == reason; }));
  }
  void CheckSucceeds() {
    Until([&] { return job().phase() == OVER; });
    CHECK(job().state() == SUCCEEDED);
    CHECK(job().final_step() == kSteps);
  }

  Manifest manifest;  // of the newest checkpoint
  SimDisk disk;

 private:
  template <typename Node>
  void Sync(Node& node) {
    if (!node.alive()) return;
    const auto session = state_->Report(node.Report(), now_);
    REQUIRE(session.ok());
    DoFileWork();
    const auto directive = state_->Directive(node.name(), *session, false);
    REQUIRE(directive.ok());
    node.Act(*directive);
  }
  void SyncAll() {
    for (auto& [name, server] : servers_) Sync(server);
    Sync(worker_);
    for (SimWorker& worker : idle_) Sync(worker);
  }
  void DoFileWork() {
    for (const MetadataChange& c : state_->TakeChanges()) {
      if (c.value) store_[c.key] = *c.value;
    }
    for (const FileWork& work : state_->TakeFileWork()) {
      const auto* write = std::get_if<WriteManifestWork>(&work);
      if (write == nullptr) continue;
      disk[write->folder].complete = true;
      manifest = write->manifest;
      state_->ManifestWritten(write->job, write->cut, absl::OkStatus(), now_);
      DoFileWork();
    }
  }

  const SimJob sim_ = {.lanes = 2, .steps = kSteps, .memory = true};
  std::map<std::string, SimServer> servers_;
  SimWorker worker_{"w0", sim_, &servers_};
  std::vector<SimWorker> idle_;
  std::map<std::string, std::string> store_;
  uint64_t incarnation_ = 0;
  std::unique_ptr<ClusterState> state_ = std::make_unique<ClusterState>(kLease, kCluster);
  absl::Time now_ = absl::FromUnixSeconds(1767225600);
};

TEST_CASE("what one server cannot read, a spare one reads: the checkpoint stays",
          "[scheduler][recovery]") {
  Cluster cluster(2, 1);
  cluster.Train(2);
  const std::string folder = cluster.TakeCheckpoint();
  const std::string reader = cluster.names()[0], spare = reader == "s0" ? "s1" : "s0";
  cluster.server(reader).ReadBadly(1000);
  cluster.Restart(reader);
  cluster.Until([&] { return cluster.job().generation() == 3; });
  cluster.RestartScheduler();  // in the midst of it
  cluster.CheckSucceeds();
  CHECK(cluster.names() == std::vector<std::string>{spare});
  CHECK(cluster.job().generation() == 3);
  CHECK(cluster.job().rollbacks() == 1);  // to read again is none
  CHECK(cluster.job().restore_from() == folder);
  CHECK(cluster.job().set_aside_size() == 0);
  CHECK(cluster.job().doubted_checkpoint().empty());
  CHECK(cluster.job().left_writers());  // of a server that has no place in the job any more
  const std::string why = cluster.Says("CheckpointReadAgain");
  CHECK(absl::StrContains(why, absl::StrCat(reader, ": ", folder, " is damaged")));
  CHECK(absl::StrContains(why, absl::StrCat("server ", spare, " what ", reader, " could not")));
}

// It may not come back under its name: nobody waits for it.
TEST_CASE("a server whose name a worker took is replaced", "[scheduler][recovery]") {
  Cluster cluster(2, 1);
  cluster.Train(2);
  const std::string gone = cluster.names()[0], spare = gone == "s0" ? "s1" : "s0";
  cluster.server(gone).Kill();
  const bool waits = GENERATE(true, false);
  if (waits) cluster.server(spare).Kill();
  cluster.Pass(kLease + kLease / 4);
  cluster.WorkerComes(gone);
  if (waits) {
    cluster.Pass(kLease * 3);
    CHECK(absl::StrContains(cluster.Says("ServerLost"),
                            gone + " is away, and a worker has its name; the job waits for it. End "
                                   "that worker, and start it again"));
    cluster.Restart(spare);
  }
  cluster.CheckSucceeds();
  CHECK(cluster.names() == std::vector<std::string>{spare});
}

TEST_CASE("a bad reader that nobody can replace is told, and waited for", "[scheduler][recovery]") {
  Cluster cluster(2, 2);
  cluster.Train(2);
  const std::string folder = cluster.TakeCheckpoint();
  const std::vector<std::string> before = cluster.names();
  cluster.server("s0").ReadBadly(1000);
  cluster.Restart("s0");
  cluster.Until([&] { return !cluster.Says("BadReader").empty(); });
  // The other one read what this one could not; this one cannot read the other's part, either.
  CHECK(cluster.names() == std::vector<std::string>{before[1], before[0]});
  CHECK(cluster.job().generation() == 3);
  CHECK(absl::StrContains(cluster.Says("BadReader"), folder + " stays"));
  cluster.Pass(kLease * 2.5);
  CHECK(cluster.job().generation() == 3);
  cluster.Pass(kLease);  // tries again
  CHECK(cluster.job().generation() == 4);
  SECTION("another server comes") { cluster.AddServer("s2"); }
  SECTION("it is started again, on a machine that was mended") {
    cluster.server("s0").ReadBadly(0);
    cluster.Restart("s0");
  }
  SECTION("it reads well at last") {
    cluster.server("s0").ReadBadly(0);
    cluster.Pass(kLease * 3.5);
  }
  cluster.CheckSucceeds();
  CHECK(cluster.job().rollbacks() == 1);
  CHECK(cluster.job().restore_from() == folder);
  CHECK(cluster.job().set_aside_size() == 0);
}

TEST_CASE("a server that is alone reads again itself", "[scheduler][recovery]") {
  Cluster cluster(1, 1);
  cluster.Train(2);
  const std::string older = cluster.TakeCheckpoint();
  cluster.Train(2);
  const std::string newer = cluster.TakeCheckpoint();
  const int bad_reads = GENERATE(1, 2);
  INFO(bad_reads);
  cluster.server("s0").ReadBadly(bad_reads);
  cluster.Restart("s0");
  cluster.CheckSucceeds();
  CHECK(cluster.job().restore_from() == (bad_reads == 1 ? newer : older));
  CHECK(cluster.job().set_aside_size() == bad_reads - 1);
}

TEST_CASE("doubts about a checkpoint end when it was read", "[scheduler][recovery]") {
  Cluster cluster(1, 1);
  cluster.Train(2);
  const std::string folder = cluster.TakeCheckpoint();
  for (int i = 0; i < 3; ++i) {
    cluster.server("s0").ReadBadly(1);
    cluster.Restart("s0");
    cluster.Until([&] { return cluster.job().phase() == OPENING; });
    cluster.Until([&] { return cluster.job().phase() == TRAINING; });
  }
  CHECK(cluster.job().restore_from() == folder);
  CHECK(cluster.job().set_aside_size() == 0);
}

TEST_CASE("a checkpoint that two servers find damaged is set aside for the one before",
          "[scheduler][recovery]") {
  const auto [servers, of_the_job] =
      GENERATE(std::make_pair(2, 2), std::make_pair(3, 2), std::make_pair(2, 1));
  INFO(servers << " servers, " << of_the_job << " of the job");
  Cluster cluster(static_cast<uint32_t>(servers), static_cast<uint32_t>(of_the_job));
  cluster.Train(2);
  const std::string older = cluster.TakeCheckpoint();
  cluster.Train(2);
  const std::string newer = cluster.TakeCheckpoint();
  cluster.disk[newer].damaged = true;
  cluster.Restart(cluster.names()[0]);
  cluster.CheckSucceeds();
  CHECK(cluster.job().restore_from() == older);
  CHECK(cluster.job().set_aside_size() == 1);
  CHECK(absl::StrContains(cluster.Says("CheckpointDamaged"), newer));
  CHECK(absl::StrContains(cluster.Says("CheckpointDamaged"), "found damage before"));
  CHECK(absl::StrContains(cluster.Says("RolledBack"), "starts from checkpoint " + older));
  CHECK(cluster.job().rollbacks() == 2);
}

TEST_CASE("a job whose checkpoints are all damaged does not start anew unasked",
          "[scheduler][recovery]") {
  Cluster cluster(2, 1);
  for (int i = 0; i < 2; ++i) {
    cluster.Train(2);
    cluster.disk[cluster.TakeCheckpoint()].damaged = true;
  }
  cluster.Restart(cluster.names()[0]);
  cluster.Until([&] { return cluster.job().phase() == OVER; });
  CHECK(cluster.job().state() == FAILED);
  const std::string why = cluster.Says("CheckpointDamaged");
  INFO(why);
  for (const auto& [folder, contents] : cluster.disk) CHECK(absl::StrContains(why, folder));
  CHECK(absl::StrContains(why, "--resume"));
  CHECK(absl::StrContains(why, "--overwrite"));
}

TEST_CASE("a job that gives up a cut that it needs ends once, also while others are taken",
          "[scheduler][recovery]") {
  Cluster cluster(2, 2, 10);
  cluster.Train(4);
  REQUIRE(cluster.job().cuts().pending_size() > 0);  // asked for ahead
  cluster.WantCutAt(1);                              // servers are past it
  for (int i = 0; i < 20 && cluster.job().phase() != OVER; ++i) cluster.Pass(absl::Seconds(1));
  const JobStateRecord job = cluster.job();
  REQUIRE(job.state() == FAILED);
  CHECK(cluster.Events("CheckpointFailed") == 1);
  CHECK(absl::StrContains(cluster.Says("CheckpointFailed"), "past step 1,"));
  std::set<std::string> closing;  // each is to say once that it closed the job
  for (const std::string& name : job.closing()) CHECK(closing.insert(name).second);
  cluster.Pass(kLease);
  CHECK(cluster.job().closing_size() == 0);
}

TEST_CASE("a checkpoint that is written anew is whole again", "[scheduler][recovery]") {
  Cluster cluster(2, 2, 10);
  cluster.Until([&] { return cluster.job().cuts().complete_size() == 2; });
  const std::string newer = cluster.job().cuts().complete(1).folder();
  cluster.disk[newer].damaged = true;
  cluster.Restart(cluster.names()[0]);
  cluster.Until([&] { return cluster.job().set_aside_size() == 1; });
  CHECK(cluster.job().set_aside(0) == newer);
  cluster.disk[newer].damaged = false;
  cluster.Until([&] { return cluster.job().cuts().complete_size() == 2; });
  CHECK(cluster.job().cuts().complete(1).folder() == newer);
  CHECK(cluster.job().set_aside_size() == 0);
  cluster.CheckSucceeds();
}

TEST_CASE("a checkpoint that is not there is waited for", "[scheduler][recovery]") {
  const uint32_t of_the_job = GENERATE(1, 2);
  INFO(of_the_job << " servers");
  Cluster cluster(2, of_the_job);
  cluster.Train(2);
  const std::string folder = cluster.TakeCheckpoint();
  auto away = cluster.disk.extract(folder);
  cluster.Restart(cluster.names()[0]);
  cluster.Until([&] { return !cluster.Says("ServerWaits").empty(); });
  CHECK(absl::StrContains(cluster.Says("ServerWaits"), folder + " is not there"));
  const uint64_t generation = cluster.job().generation();
  cluster.Pass(kLease * 30);
  CHECK(cluster.job().phase() == OPENING);
  CHECK(cluster.job().generation() == generation);
  CHECK(cluster.Events("ServerWaits") == of_the_job);  // not each report anew
  cluster.disk.insert(std::move(away));
  cluster.CheckSucceeds();
  CHECK(cluster.job().restore_from() == folder);
  CHECK(cluster.job().set_aside_size() == 0);
}

TEST_CASE("a job that completed no checkpoint starts at the beginning, and says so",
          "[scheduler][recovery]") {
  Cluster cluster(1, 1);
  cluster.Train(4);
  cluster.Restart("s0");
  cluster.Until([&] { return cluster.job().generation() == 2; });
  CHECK(absl::StrContains(cluster.Says("RolledBack"),
                          "from the beginning, as no checkpoint was completed yet"));
  cluster.CheckSucceeds();
}

// A deepfm over data whose lines decide how many fields it has: three.
JobSpec DeepFm(ClusterState::Submission& s) {
  JobSpec& spec = *s.job.mutable_spec();
  spec.mutable_data()->set_format("libfm");
  ModelSpec& model = *spec.mutable_model();
  model.set_type("deepfm");
  model.set_embedding_dim(4);
  model.add_hidden(8);
  spec.mutable_optimizer()->mutable_sparse()->set_type("adagrad");
  spec.mutable_optimizer()->mutable_dense()->set_type("adam");
  return spec;
}

Schema Of(const JobSpec& spec, uint32_t fields) {
  const auto schema = SchemaOf(spec, fields, 0);
  INFO(schema.status());
  REQUIRE(schema.ok());
  return *schema;
}

TEST_CASE("what a job starts from is compared with it again when its data are known",
          "[scheduler][recovery]") {
  const uint32_t fields = GENERATE(2u, 3u);
  const bool allow = GENERATE(false, true);
  INFO(fields << " fields before, " << allow);
  Cluster cluster(1, 1, 0, [&](ClusterState::Submission& s) {
    s.init_schema = Of(DeepFm(s), fields);
    s.init.emplace().set_model_hash(std::string(32, '6'));
    InitFromSpec& init = *s.job.mutable_spec()->mutable_model()->mutable_init_from();
    init.set_checkpoint("/old");
    if (!allow) return;
    init.set_new_tensors("allow");
    init.set_dropped_tensors("allow");
    s.init_sample_weight = "w";
  });
  if (fields == 2 && !allow) {
    CHECK(cluster.job().state() == FAILED);
    CHECK(cluster.Says("CheckpointDoesNotFit") ==
          "spec.model.initFrom /old does not fit the job:\n"
          "  tensor layer_0_weight was (8, 8), is (12, 8); let it begin anew with "
          "spec.model.initFrom.newTensors: allow and droppedTensors: allow");
    return;
  }
  CHECK(cluster.job().phase() == OPENING);
  CHECK(cluster.job().restore_from() == "/old");
  CHECK(absl::StartsWith(cluster.Says("StartsFrom"),
                         "spec.model.initFrom /old: loaded: table features, tensor bias, "));
  CHECK(absl::StrContains(cluster.Says("StartsFrom"),
                          "; other shape: tensor layer_0_weight was (8, 8), is (12, 8)") ==
        (fields == 2));
  CHECK(absl::EndsWith(cluster.Says("StartsFrom"), "; changed: spec.sampleWeight was w, is none") ==
        allow);
  // What is to be read does not get lost with the scheduler.
  const auto plan = [&cluster] {
    const NodeDirective directive = cluster.Directive("s0");
    REQUIRE(directive.server_jobs_size() == 1);
    return directive.server_jobs(0).restore_plan();
  };
  CHECK(plan().checkpoint().model_hash() == std::string(32, '6'));
  CHECK(plan().tables_size() == 1);
  CHECK(plan().tensors_size() == (fields == 2 ? 4 : 5));
  const std::string before = plan().SerializeAsString();
  cluster.RestartScheduler();
  CHECK(plan().SerializeAsString() == before);
}

TEST_CASE("a job does not resume over data that make another model of it",
          "[scheduler][recovery]") {
  const uint32_t fields = GENERATE(2u, 3u);
  Cluster cluster(1, 1, 0, [&](ClusterState::Submission& s) {
    s.resume = true;
    s.resume_schema = Of(DeepFm(s), fields);
    CheckpointRecord record;
    record.set_step(4);
    record.set_folder("/c/step-000000000004");
    s.complete = {record};
  });
  CHECK((cluster.job().state() == FAILED) == (fields == 2));
  CHECK(absl::StrContains(cluster.Says("CheckpointDoesNotFit"),
                          "tensor layer_0_weight was (8, 8), is (12, 8)") == (fields == 2));
  if (fields == 2) return;
  CHECK(absl::StartsWith(cluster.Says("ResumesFrom"),
                         "/c/step-000000000004: loaded: table features, tensor bias, "));
  CHECK(absl::StrContains(cluster.Says("ResumesFrom"),
                          "; the training files are not those of the checkpoint"));
}

// A checkpoint whose run had read the first of the two files, in 25 steps.
FoundInDirectory AfterTheFirstFile(ClusterState::Submission& s) {
  FoundInDirectory found{.resume_schema = Of(DeepFm(s), 3)};
  TrainedData& data = *found.resume_schema->mutable_data();
  data.add_files()->set_path("train");
  data.mutable_end()->set_steps(25);
  data.mutable_end()->set_lines(kSteps);
  CheckpointRecord& record = found.complete.emplace_back();
  record.set_step(25);
  record.set_folder("/c/step-000000000025");
  return found;
}

TEST_CASE("what a job reads of files that grew does not get lost with the scheduler",
          "[scheduler][recovery][daily]") {
  Cluster cluster(1, 1, 0, [&](ClusterState::Submission& s) {
    s.resume = true;
    const FoundInDirectory found = AfterTheFirstFile(s);
    s.resume_schema = found.resume_schema;
    s.complete = found.complete;
  });
  REQUIRE(cluster.job().phase() == OPENING);
  CHECK(absl::EndsWith(cluster.Says("ResumesFrom"),
                       "; 1 training file was read before; reads 1: train.1"));
  CHECK(cluster.job().total_steps() == 25 + kSteps / 2);
  const auto told = [&] {
    const NodeDirective worker = cluster.WorkerDirective();
    REQUIRE(worker.worker_jobs_size() == 1);
    const InputIndex& index = worker.worker_jobs(0).train_index();
    CHECK(index.files_size() == 1);
    CHECK(index.tasks_size() == 2);
    CHECK(index.before().steps() == 25);
    const NodeDirective server = cluster.Directive("s0");
    REQUIRE(server.server_jobs_size() == 1);
    return absl::StrCat(index.SerializeAsString(), server.server_jobs(0).index_fingerprint());
  };
  const std::string before = told();
  cluster.RestartScheduler();
  CHECK(told() == before);
  CHECK(cluster.job().total_steps() == 25 + kSteps / 2);
}

TEST_CASE("a later look into the directory decides anew what of the files is read",
          "[scheduler][recovery][daily]") {
  FoundInDirectory first;
  Cluster cluster(
      1, 1, 0,
      [&](ClusterState::Submission& s) {
        s.resume = true;
        first = AfterTheFirstFile(s);
      },
      /*stalls=*/true);
  REQUIRE(cluster.job().phase() == INDEXING);
  CHECK(cluster.job().total_steps() == kSteps);
  cluster.FoundAgain(first);
  CHECK(cluster.job().total_steps() == 25 + kSteps / 2);
  // The job's own checkpoints come without a schema, which is what it was.
  cluster.FoundAgain({.complete = first.complete});
  CHECK(cluster.job().total_steps() == 25 + kSteps / 2);
  cluster.FoundAgain({});
  CHECK(cluster.job().total_steps() == kSteps);
}

// Of spec.model.initFrom nobody has looked at anything: its rows would be taken for the job's own.
TEST_CASE("a job whose own checkpoint is gone begins from no other unlooked",
          "[scheduler][recovery]") {
  Cluster cluster(
      1, 1, 0,
      [&](ClusterState::Submission& s) {
        s.resume = true;
        s.resume_schema = Of(DeepFm(s), 3);
        s.job.mutable_spec()->mutable_model()->mutable_init_from()->set_checkpoint("/old");
        CheckpointRecord record;
        record.set_step(4);
        record.set_folder("/c/step-000000000004");
        s.complete = {record};
      },
      /*stalls=*/true);
  REQUIRE(cluster.job().phase() != OVER);
  cluster.FoundAgain({.lock = 2});
  CHECK(cluster.job().state() == FAILED);
  CHECK(absl::StrContains(cluster.Says("CheckpointGone"), "submit the job again"));
}

TEST_CASE("what a later look finds is compared with the data, too", "[scheduler][recovery]") {
  const uint32_t fields = GENERATE(2u, 3u);
  Schema saved;
  const auto change = [&](ClusterState::Submission& s) {
    saved = Of(DeepFm(s), fields);
    s.resume = true;
  };
  Cluster cluster(1, 1, 0, change, true);
  REQUIRE(cluster.job().phase() == INDEXING);
  CheckpointRecord record;
  record.set_step(4);
  record.set_folder("/c/step-000000000004");
  FoundInDirectory found{.complete = {record}, .resume_schema = saved};
  cluster.FoundAgain(found);
  CHECK((cluster.job().state() == FAILED) == (fields == 2));
  CHECK(absl::StrContains(cluster.Says("CheckpointDoesNotFit"),
                          "tensor layer_0_weight was (8, 8), is (12, 8)") == (fields == 2));
  if (fields == 2) return;
  // The same once more is not told twice.
  CHECK(cluster.Events("ResumesFrom") == 1);
  cluster.FoundAgain(found);
  CHECK(cluster.Events("ResumesFrom") == 1);
  cluster.FoundAgain({});
  CHECK(cluster.job().phase() == INDEXING);
}

// The job over csv with a vocabulary, whose name is its values (SimWorker).
void UseVocabulary(const std::string& values, ClusterState::Submission& s) {
  JobSpec& spec = *s.job.mutable_spec();
  DeepFm(s);
  spec.mutable_data()->set_format("csv");
  for (const char* name : {"item", "user", "shop"}) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(name);
    field.set_column(name);
    field.set_kind("categorical");
    field.set_table("features");
  }
  spec.mutable_fields(0)->mutable_vocabulary()->set_file(values);
  spec.mutable_fields(0)->mutable_vocabulary()->set_out_of_vocabulary(1);
}

// The schema that such a job leaves.
Schema WithVocabulary(const std::string& values) {
  ClusterState::Submission s;
  s.job.mutable_spec()->mutable_storage()->set_partitions(16);
  UseVocabulary(values, s);
  Schema schema = Of(s.job.spec(), 3);
  schema.mutable_fields(0)->set_vocabulary(values);
  schema.mutable_fields(0)->set_vocabulary_values(values.size());
  return schema;
}

TEST_CASE("a job asks of its vocabularies what its checkpoint knows", "[scheduler][recovery]") {
  const std::string saved = GENERATE("abc", "acb", "abcde", "abcdef");
  const bool resume = GENERATE(false, true);
  INFO(saved << ", " << resume);
  Cluster cluster(1, 1, 0, [&](ClusterState::Submission& s) {
    UseVocabulary("abcde", s);
    if (!resume) {
      s.init_schema = WithVocabulary(saved);
      s.job.mutable_spec()->mutable_model()->mutable_init_from()->set_checkpoint("/old");
      return;
    }
    s.resume = true;
    s.resume_schema = WithVocabulary(saved);
    CheckpointRecord record;
    record.set_step(4);
    record.set_folder("/c/step-000000000004");
    s.complete = {record};
  });
  const bool begins = std::string("abcde").rfind(saved, 0) == 0;
  CHECK((cluster.job().state() == FAILED) == !begins);
  const std::string refused = cluster.Says("CheckpointDoesNotFit");
  CHECK(absl::StrContains(refused,
                          "field item: vocabulary file abcde does not begin with the 3 "
                          "values that the checkpoint knows") == (saved == "acb"));
  CHECK(absl::StrContains(refused,
                          "abcde has 5 values, and the checkpoint knows 6: line 6 is "
                          "missing") == (saved == "abcdef"));
  CHECK(absl::StrContains(cluster.Says(resume ? "ResumesFrom" : "StartsFrom"),
                          "field item (a vocabulary of 3 values, 5 now)") == (saved == "abc"));
}

TEST_CASE("a weight of lines that an earlier scheduler did not note is not compared",
          "[scheduler][recovery]") {
  const bool noted = GENERATE(false, true);
  INFO("noted " << noted);
  Cluster cluster(
      1, 1, 0,
      [](ClusterState::Submission& s) {
        UseVocabulary("abc", s);
        s.job.mutable_spec()->set_sample_weight("w");
        s.init_schema = WithVocabulary("abc");
        s.init_sample_weight = "w";
        s.job.mutable_spec()->mutable_model()->mutable_init_from()->set_checkpoint("/old");
      },
      /*stalls=*/true);
  REQUIRE(cluster.job().phase() == INDEXING);
  CHECK_FALSE(absl::StrContains(cluster.Says("StartsFrom"), "sampleWeight"));
  cluster.RestartWith([&](JobSpecRecord& record) {
    REQUIRE(record.init_sample_weight() == "w");
    if (noted) record.set_init_sample_weight("");
    if (!noted) record.clear_init_sample_weight();
  });
  cluster.FoundAgain({});
  CHECK((cluster.job().state() == FAILED) == noted);
  CHECK(absl::StrContains(cluster.Says("CheckpointDoesNotFit"),
                          "spec.sampleWeight was none, is w") == noted);
  CHECK(absl::EndsWith(cluster.Says("StartsFrom"),
                       "; not compared: spec.sampleWeight (an earlier version accepted the job)") ==
        !noted);
}

TEST_CASE("manifests say what the fields' vocabularies have", "[scheduler][recovery]") {
  Cluster cluster(1, 1, 0, [](ClusterState::Submission& s) { UseVocabulary("abcde", s); });
  cluster.Until([&] { return cluster.job().phase() == TRAINING; });
  // As the scheduler that comes after this one does, which did not see the index being made.
  cluster.RestartScheduler();
  cluster.Train(2);
  cluster.TakeCheckpoint();
  CHECK(cluster.manifest.schema().fields(0).vocabulary() == "abcde");
  CHECK(cluster.manifest.schema().fields(0).vocabulary_values() == 5);
  CHECK(cluster.manifest.schema().fields(1).vocabulary().empty());
}

TEST_CASE("a vocabulary that a later look would compare is told", "[scheduler][recovery]") {
  Cluster cluster(
      1, 1, 0,
      [](ClusterState::Submission& s) {
        UseVocabulary("abcde", s);
        s.resume = true;
      },
      /*stalls=*/true);
  REQUIRE(cluster.job().phase() == INDEXING);
  CheckpointRecord record;
  record.set_step(4);
  record.set_folder("/c/step-000000000004");
  cluster.FoundAgain({.complete = {record}, .resume_schema = WithVocabulary("abc")});
  CHECK(cluster.job().state() == FAILED);
  CHECK(absl::StrContains(cluster.Says("CheckpointDoesNotFit"),
                          "vocabulary file abcde has 5 values, and was not compared with the 3 of "
                          "a checkpoint that came since"));
}

TEST_CASE("manifests say what the model is made of", "[scheduler][recovery]") {
  Cluster cluster(1, 1, 0, [&](ClusterState::Submission& s) { DeepFm(s); });
  cluster.Until([&] { return cluster.job().phase() == TRAINING; });
  cluster.Train(2);
  cluster.TakeCheckpoint();
  const Schema& schema = cluster.manifest.schema();
  CHECK(schema.model() == "deepfm");
  CHECK(schema.tensors_size() == 5);
  CHECK(schema.tensors(1).shape(0) == 12);
  CHECK(schema.data_fingerprint().size() == 32);
}

TEST_CASE("keys that hash positions are warned of", "[scheduler][recovery]") {
  Cluster cluster(1, 1, 0, [&](ClusterState::Submission& s) {
    DeepFm(s);
    s.job.mutable_spec()->mutable_data()->set_format("csv");
    s.job.mutable_spec()->mutable_data()->mutable_columns()->add_categorical("0");
  });
  CHECK(absl::StartsWith(cluster.Says("KeysByPosition"),
                         "spec.data.columns: the categories of column 0 are hashed with"));
}

TEST_CASE("a din without a sequence is warned of", "[scheduler][recovery]") {
  Cluster cluster(1, 1, 0, [&](ClusterState::Submission& s) {
    DeepFm(s);
    JobSpec& spec = *s.job.mutable_spec();
    spec.mutable_data()->set_format("csv");
    spec.mutable_data()->mutable_columns()->add_categorical("user");
    spec.mutable_model()->set_type("din");
  });
  CHECK(
      absl::StartsWith(cluster.Says("NothingToAttend"),
                       "spec.model.type: din weighs sequences by the item, and the job has none"));
}

}  // namespace
}  // namespace strata::scheduler
