#include "tests/scheduler/job/recovery_cluster.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tests/scheduler/store/stored_records.h"

namespace strata::scheduler {

template <typename Node>
void RecoveryCluster::Sync(Node& node) {
  if (!node.alive()) return;
  const auto session = state_->Report(node.Report(), now_);
  REQUIRE(session.ok());
  DoFileWork();
  const auto directive = state_->Directive(node.name(), *session, false);
  REQUIRE(directive.ok());
  node.Act(*directive);
}

void RecoveryCluster::SyncAll() {
  for (auto& [name, server] : servers_) Sync(server);
  Sync(worker_);
  for (SimWorker& worker : idle_) Sync(worker);
}

void RecoveryCluster::DoFileWork() {
  ApplyChanges(state_->TakeChanges(), store_);
  for (const FileWork& work : state_->TakeFileWork()) {
    const auto* write = std::get_if<WriteManifestWork>(&work);
    if (write == nullptr) continue;
    disk[write->folder].complete = true;
    manifest = write->manifest;
    state_->ManifestWritten(write->job, write->cut, absl::OkStatus(), now_);
    DoFileWork();
  }
}

RecoveryCluster::RecoveryCluster(uint32_t servers, uint32_t of_the_job, uint64_t cut_every,
                                 const std::function<void(ClusterState::Submission&)>& change,
                                 bool stalls) {
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

void RecoveryCluster::Until(const std::function<bool()>& done) {
  for (int round = 0; !done(); ++round) {
    INFO(state_->Status(1, now_).DebugString());
    REQUIRE(round < 200);
    SyncAll();
    worker_.Work();
  }
}

void RecoveryCluster::Train(uint64_t steps) {
  const uint64_t to = step() + steps;
  Until([&] { return step() >= to; });
}

std::string RecoveryCluster::TakeCheckpoint() {
  const int before = job().cuts().complete_size();
  REQUIRE(state_->WantCheckpoint(1, now_).ok());
  Until([&] { return job().cuts().complete_size() > before; });
  return job().cuts().complete(before).folder();
}

void RecoveryCluster::WantCutAt(uint64_t step) {
  NodeReport report = worker_.Report();
  report.mutable_worker_jobs(0)->set_wants_cut_at(step);
  REQUIRE(state_->Report(report, now_).ok());
}

void RecoveryCluster::Pass(absl::Duration time) {
  for (const absl::Time end = now_ + time; now_ < end;) {
    now_ = std::min(end, now_ + kLease / 16);
    SyncAll();
    state_->Tick(now_);
    DoFileWork();
  }
}

void RecoveryCluster::AddServer(const std::string& name) {
  servers_.emplace(name, SimServer(name, sim_, &disk));
  servers_.at(name).Start(++incarnation_);
}

void RecoveryCluster::WorkerComes(const std::string& name) {
  idle_.emplace_back(name, sim_, &servers_);
  idle_.back().Start(++incarnation_);
}

void RecoveryCluster::Restart(const std::string& name) {
  servers_.at(name).Kill();
  servers_.at(name).Start(++incarnation_);
}

void RecoveryCluster::RestartScheduler() {
  DoFileWork();
  state_ = std::make_unique<ClusterState>(kLease, kCluster);
  REQUIRE(state_->Restore(store_, now_).ok());
}

void RecoveryCluster::RestartWith(const std::function<void(JobSpecRecord&)>& change) {
  DoFileWork();
  std::string& stored = store_.at("job/00000000000000000001/spec");
  JobSpecRecord record;
  REQUIRE(record.ParseFromString(stored));
  change(record);
  stored = record.SerializeAsString();
  RestartScheduler();
}

NodeDirective RecoveryCluster::Directive(const std::string& name) {
  const auto session = state_->Report(servers_.at(name).Report(), now_);
  REQUIRE(session.ok());
  const auto directive = state_->Directive(name, *session, false);
  REQUIRE(directive.ok());
  return *directive;
}

NodeDirective RecoveryCluster::WorkerDirective() {
  NodeReport report = worker_.Report();
  report.set_seen_version(0);
  const auto session = state_->Report(report, now_);
  REQUIRE(session.ok());
  const auto directive = state_->Directive(report.name(), *session, false);
  REQUIRE(directive.ok());
  return *directive;
}

std::vector<std::string> RecoveryCluster::names() const {
  std::vector<std::string> names;
  const JobStateRecord record = job();
  for (const ServerSlot& slot : record.servers()) names.push_back(slot.name());
  return names;
}

std::string RecoveryCluster::Says(const std::string& reason) const {
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

size_t RecoveryCluster::Events(const std::string& reason) const {
  const GetEventsReply all = state_->Events(0, 1, 0);
  return static_cast<size_t>(std::count_if(all.events().begin(), all.events().end(),
                                           [&](const Event& e) { return e.reason() == reason; }));
}

void RecoveryCluster::CheckSucceeds() {
  Until([&] { return job().phase() == OVER; });
  CHECK(job().state() == SUCCEEDED);
  CHECK(job().final_step() == kSteps);
}

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

Schema SchemaFor(const JobSpec& spec, uint32_t fields) {
  const auto schema = SchemaOf(spec, fields, 0);
  INFO(schema.status());
  REQUIRE(schema.ok());
  return *schema;
}

}  // namespace strata::scheduler
