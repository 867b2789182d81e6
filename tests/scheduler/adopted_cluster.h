// A cluster whose scheduler lost its records of a job, which its servers keep.
#ifndef STRATA_TESTS_SCHEDULER_ADOPTED_CLUSTER_H_
#define STRATA_TESTS_SCHEDULER_ADOPTED_CLUSTER_H_

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
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "scheduler/cluster_state.h"
#include "scheduler/state/start.h"
#include "tests/scheduler/sim_nodes.h"
#include "tests/scheduler/store/stored_records.h"

namespace strata::scheduler {

inline constexpr absl::Duration kLease = absl::Seconds(10);
inline constexpr ClusterId kCluster = {0, 1};
inline constexpr JobUid kJob = {0, 7};
inline constexpr uint64_t kSteps = 200;

// Two servers with a job on both of them, and a worker; the scheduler knew it, and lost it.
class AdoptedCluster {
 public:
  // `daily`: it resumed with a second file, which alone it reads.
  explicit AdoptedCluster(bool daily = false, const std::string& init_from = "") {
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
    lost.owner = "me";
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
                                        .damaged = damaged,
                                        .other_format = other_format,
                                        .data = data,
                                        .held_up = lock == 0 ? "it waits" : "",
                                        .looked_lock = lock,
                                        .owner = "adopter"},
                                       now_)
                               .status();
    Save();
    return s;
  }
  // The lock is held, and what lies in the directory was looked at.
  void Held(uint64_t lock) {
    if (state_->LooksAgain(Id(), lock)) {
      state_->FoundAgain(
          Id(),
          FoundInDirectory{
              .lock = lock, .complete = own, .damaged = damaged, .other_format = other_format},
          now_);
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
  // The conditions of that reason.
  std::vector<std::string> Said(const std::string& reason) const {
    std::vector<std::string> said;
    const JobStateRecord state = State();
    for (const JobCondition& c : state.conditions()) {
      if (c.reason() == reason) said.push_back(c.message());
    }
    return said;
  }
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
  std::string damaged;        // as FoundInDirectory's
  absl::Status other_format;  // likewise
  TrainedData data;           // what is found of which files were read before

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
    ApplyChanges(state_->TakeChanges(), store_);
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

}  // namespace strata::scheduler

#endif  // STRATA_TESTS_SCHEDULER_ADOPTED_CLUSTER_H_
