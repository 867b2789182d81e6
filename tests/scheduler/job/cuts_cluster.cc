#include "tests/scheduler/job/cuts_cluster.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <utility>
#include <variant>

namespace strata::scheduler {

template <typename Node>
void CutsCluster::Sync(Node& node) {
  if (!node.alive()) return;
  const auto session = state_.Report(node.Report(), now_);
  REQUIRE(session.ok());
  DoFileWork();
  const auto directive = state_.Directive(node.name(), *session, false);
  REQUIRE(directive.ok());
  node.Act(*directive);
}

void CutsCluster::DoFileWork() {
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

CutsCluster::CutsCluster(const CutsSetup& setup) {
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

void CutsCluster::Until(const std::function<bool()>& done) {
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

void CutsCluster::TakeCheckpoint() {
  REQUIRE(state_.WantCheckpoint(1, now_).ok());
  DoFileWork();
  Until([&] { return job().cuts().complete_size() == 1; });
  REQUIRE(WindowsIn(job().cuts().complete(0).folder()) < kAll);
}

void CutsCluster::WantCheckpoint() { REQUIRE(state_.WantCheckpoint(1, now_).ok()); }

void CutsCluster::FinishTask(size_t worker) {
  for (uint64_t window = 0; window < kWindows; ++window) workers_[worker].Work();
}

void CutsCluster::RestartServer() {
  servers_.at("s0").Kill();
  servers_.at("s0").Start(++incarnation_);
}

void CutsCluster::LoseWorkers() {
  for (SimWorker& worker : workers_) worker.Kill();
  for (int i = 0; i < 5; ++i) {
    Pass(kLease / 2);
    SyncServers();
  }
  const JobStateRecord now = job();
  for (const WorkerSlot& slot : now.workers()) REQUIRE(slot.name().empty());
}

void CutsCluster::BeginCut() {
  Until([&] { return status().examples() >= 4; });  // both are at work
  WantCheckpoint();
  SyncServers();
  Sync(workers_[0]);
  for (int i = 0; i < 3; ++i) workers_[0].Work();
}

void CutsCluster::SyncServers() {
  for (auto& [name, server] : servers_) Sync(server);
}

void CutsCluster::SyncServer(const std::string& name) { Sync(servers_.at(name)); }

void CutsCluster::SyncAll() {
  SyncServers();
  for (SimWorker& worker : workers_) Sync(worker);
}

void CutsCluster::WorkerTakesName(const std::string& server) {
  servers_.at(server).Kill();
  Pass(kLease + kLease / 4);
  workers_.emplace_back(server, SimJob{.lanes = 2}, &servers_);
  workers_.back().Start(++incarnation_);
}

void CutsCluster::EndOthers(size_t jobs) {
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

void CutsCluster::RestartWorker(size_t worker) {
  workers_[worker].Kill();
  workers_[worker].Start(++incarnation_);
  Sync(workers_[worker]);
}

uint64_t CutsCluster::given_up() const {
  const Node* node = state_.members().Find("s0");
  NodeDirective d;
  state_.jobs().at(1)->AddServerDirective(state_.members(), *node, false, d);
  return d.server_jobs(0).given_up_through();
}

void CutsCluster::StartWorkers() {
  for (SimWorker& worker : workers_) worker.Start(++incarnation_);
}

void CutsCluster::Pass(absl::Duration time) {
  for (const absl::Time end = now_ + time; now_ < end;) {
    now_ = std::min(end, now_ + kLease / 16);
    state_.Tick(now_);
    DoFileWork();
  }
}

size_t CutsCluster::WindowsIn(const std::string& folder) const {
  REQUIRE(disk_.at(folder).complete);
  return disk_.at(folder).files.at("s0").applied.size();
}

uint64_t CutsCluster::closed_tasks() const {
  const LedgerRecord& ledger = *state_.jobs().at(1)->ledger();
  return ledger.closed_below() + static_cast<uint64_t>(ledger.closed_size());
}

void CutsCluster::Cancel() {
  REQUIRE(state_.Cancel(1, now_).ok());
  DoFileWork();
}

void CutsCluster::LeftoversRemoved(uint64_t number, const absl::Status& status) {
  state_.LeftoversRemoved(1, number, status, now_);
  DoFileWork();
}

void CutsCluster::SayKept(const std::string& server, bool closes) {
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

void CutsCluster::WriteHeld(const absl::Status& status) {
  hold_manifests = false;
  for (const WriteManifestWork& work : std::exchange(held, {})) {
    last_held = work.folder;
    state_.ManifestWritten(work.job, work.cut, status, now_);
  }
  DoFileWork();
}

void CheckEndsWhole(CutsCluster& cluster) {
  cluster.Until([&] { return cluster.job().phase() == OVER; });
  CHECK(cluster.job().state() == SUCCEEDED);
  CHECK(cluster.WindowsIn(cluster.job().final_checkpoint()) == CutsCluster::kAll);
}

}  // namespace strata::scheduler
