#include "tests/scheduler/cluster_sim.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <iterator>
#include <set>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "proto/core/uid.h"
#include "tests/scheduler/store/stored_records.h"

namespace strata::scheduler {
namespace {

constexpr absl::Duration kLease = absl::Seconds(10);
constexpr ClusterId kCluster = {0, 1};

}  // namespace

ClusterSim::ClusterSim(uint64_t seed, SimSetup setup) : random_(seed), setup_(std::move(setup)) {
  job_.lanes = setup_.lanes;
  job_.memory = setup_.memory;
  // Batch 1: bsp 8 steps of 4 lanes an epoch, async a window for each line of a task.
  (setup_.bsp ? job_.steps : job_.windows_per_task) = setup_.bsp ? 8 * kEpochs : kTaskLines;
  job_.bad_every = kBadEvery;
  for (uint32_t i = 0; i <= setup_.servers; ++i) {  // one to spare
    const std::string name = "s" + std::to_string(i);
    servers_.emplace(name, SimServer(name, job_, &disk_));
  }
  for (uint32_t i = 0; i < setup_.workers; ++i) {
    workers_.emplace_back("w" + std::to_string(i), job_, &servers_);
  }
  for (auto& [name, server] : servers_) server.Start(++incarnation_);
  for (SimWorker& worker : workers_) worker.Start(++incarnation_);
  state_ = std::make_unique<ClusterState>(kLease, kCluster);
  REQUIRE(state_->Restore(store_, now_).ok());
}

void ClusterSim::Submit() {
  ClusterState::Submission s;
  s.request_id = "r";
  s.uid = {0, 1};
  s.job.mutable_metadata()->set_name("job");
  JobSpec& spec = *s.job.mutable_spec();
  spec.mutable_training()->set_mode(setup_.bsp ? "bsp" : "async");
  spec.mutable_training()->set_lanes(setup_.lanes);
  spec.mutable_training()->set_batch_size(1);
  spec.mutable_training()->set_epochs(kEpochs);
  spec.mutable_data()->set_max_bad_lines(kBadLines);
  spec.mutable_replicas()->set_servers(setup_.servers);
  spec.mutable_replicas()->set_workers(setup_.workers);
  spec.mutable_storage()->set_partitions(16);
  spec.mutable_storage()->set_durability(setup_.memory ? "memory" : "logged");
  spec.mutable_checkpoint()->set_directory(setup_.directory);
  spec.mutable_checkpoint()->set_every_steps(setup_.every_steps);
  spec.mutable_checkpoint()->set_keep(2);
  REQUIRE(state_->Submit(std::move(s), now_).ok());
  Save();
}

void ClusterSim::Save() {
  ApplyChanges(state_->TakeChanges(), store_);
  const uint64_t restarts = restarts_;
  for (FileWork& w : state_->TakeFileWork()) {
    // Killed with its state recorded and the files not done: a restart does them.
    if (faults_ && Roll(20) == 0) RestartScheduler();
    if (restarts_ != restarts) return;
    Do(w);
    if (restarts_ != restarts) return;
  }
}

void ClusterSim::Do(const FileWork& work) {
  if (const auto* write = std::get_if<WriteManifestWork>(&work)) {
    const bool fails = faults_ && Roll(10) == 0;
    if (!fails) {
      SimFolder& folder = disk_[write->folder];
      // A manifest never names what is not there.
      for (const CheckpointFile& f : write->manifest.files()) REQUIRE(folder.files.count(f.name()));
      folder.complete = true;
      folder.cut = write->manifest.cut();
      CheckManifest(write->manifest, folder);
    }
    state_->ManifestWritten(write->job, write->cut,
                            fails ? absl::ResourceExhaustedError("disk full") : absl::OkStatus(),
                            now_);
    Save();
  } else if (const auto* remove = std::get_if<RemoveCheckpointWork>(&work)) {
    // What comes late, after a restart too, finds what is there by then.
    REQUIRE(remove->meant.has_value());
    const auto there = disk_.find(remove->folder);
    const bool another =
        there != disk_.end() && there->second.complete && there->second.cut != remove->meant->cut();
    if (there != disk_.end() && !another) disk_.erase(there);
    state_->Removed(remove->job, remove->number,
                    another ? absl::AlreadyExistsError("another cut's") : absl::OkStatus(), now_);
    Save();
  } else if (const auto* left = std::get_if<RemoveLeftoversWork>(&work)) {
    const std::set<std::string>& only = left->over.folders;
    for (auto& [name, folder] : disk_) {
      if (!only.empty() && !only.contains(name)) continue;
      if (!folder.complete && !left->over.pending_folders.contains(name)) folder.files.clear();
    }
    state_->LeftoversRemoved(left->job, left->number, absl::OkStatus(), now_);
    Save();
  }
}

// All servers at one point, what the manifest says is there, and it counts what it says is done.
void ClusterSim::CheckManifest(const Manifest& manifest, const SimFolder& folder) {
  if (!setup_.bsp) {
    uint64_t examples = 0, bad_lines = 0;
    for (uint64_t task : manifest.closed_tasks()) {
      const TaskCounts counts = job_.CountLines(task, kTaskLines, kTasks);
      examples += counts.examples();
      bad_lines += counts.bad_lines();
    }
    REQUIRE(manifest.examples() == examples);
    REQUIRE(manifest.bad_lines() == bad_lines);
  }
  for (const CheckpointFile& f : manifest.files()) {
    const SimShard& shard = folder.files.at(f.name());
    if (setup_.bsp) {
      REQUIRE(shard.clock == manifest.step());
      continue;
    }
    REQUIRE(shard.EachOnce());
    for (uint64_t task : manifest.closed_tasks()) {
      for (uint64_t w = 0; w < kTaskLines; ++w) REQUIRE(shard.applied.count({task, w}) == 1);
    }
    for (const LanePosition& p : manifest.lanes()) {
      for (uint64_t w = 0; w < p.next_window(); ++w) {
        REQUIRE(shard.applied.count({p.task(), w}) == 1);
      }
    }
  }
}

template <typename NodeT>
void ClusterSim::Sync(NodeT& node) {
  if (!node.alive()) return;
  if (node.name() == cut_off_) return;
  if (faults_ && Roll(8) == 0) return;  // request lost
  const uint64_t restarts = restarts_;
  auto session = state_->Report(node.Report(), now_);
  Save();
  if (restarts_ != restarts) return;  // its answer died with it
  Check();
  if (!session.ok()) {
    REQUIRE(absl::IsUnauthenticated(session.status()));
    node.Fenced();
    return;
  }
  auto directive = state_->Directive(node.name(), *session, false);
  REQUIRE(directive.ok());
  if (faults_ && Roll(8) == 0) return;  // reply lost
  node.Act(*directive);
}

// What every node would be told of its jobs, versions aside.
std::string ClusterSim::Told() {
  std::string all;
  for (const auto& [name, node] : state_->members().nodes()) {
    NodeDirective d = *state_->Directive(name, node.record.session(), false);
    all += name + ":";
    for (const auto& j : d.server_jobs()) all += j.close() ? "" : j.SerializeAsString();
    for (const auto& j : d.worker_jobs()) all += j.close() ? "" : j.SerializeAsString();
  }
  return all;
}

void ClusterSim::RestartScheduler() {
  ++restarts_;
  const std::string before = Told();
  const std::string events = state_->Events(0, 0, 0).SerializeAsString();
  state_ = std::make_unique<ClusterState>(kLease, kCluster);
  REQUIRE(state_->Restore(store_, now_).ok());
  REQUIRE(Told() == before);
  REQUIRE(state_->Events(0, 0, 0).SerializeAsString() == events);
  Save();
  if (++event_checks_ % 4 == 0) CheckEvents();
}

// Nothing is told twice, and the job's states follow each other, whatever restarts.
void ClusterSim::CheckEvents() {
  std::set<std::string> cuts;
  std::string state = "PENDING";
  const GetEventsReply all = state_->Events(0, 1, 0);
  for (const Event& e : all.events()) {
    if (e.reason() == "CutStarted") REQUIRE(cuts.insert(e.message()).second);
    if (e.reason() != "JobState") continue;
    const size_t arrow = e.message().find(" -> ");
    REQUIRE(e.message().substr(0, arrow) == state);
    state = e.message().substr(arrow + 4);
  }
  REQUIRE(state == JobState_Name(state_->jobs().at(1)->state().state()));
}

void ClusterSim::Check() {
  const JobMachine& job = *state_->jobs().at(1);
  REQUIRE(job.state().generation() >= generation_);
  generation_ = job.state().generation();
  if (!setup_.bsp) {
    const JobStatus status = job.Status(now_);
    REQUIRE(status.bad_lines() <= kBadLines);
    REQUIRE(status.examples() <= kLines - kBadLines);
  }
  if (job.over()) return;
  std::vector<uint64_t> hosts(setup_.lanes);
  for (const auto& [name, node] : state_->members().nodes()) {
    if (node.record.role() != WORKER) continue;
    NodeDirective d;
    job.AddWorkerDirective(state_->members(), node, false, d);
    for (const auto& j : d.worker_jobs()) {
      for (uint32_t lane : j.lanes()) {
        REQUIRE(hosts[lane] == 0);
        hosts[lane] = node.record.session();
      }
    }
  }
  CheckHosts(hosts);
}

void ClusterSim::Fault() {
  if (setup_.cut_off && Roll(3) == 0) return CutOff();
  switch (Roll(12)) {
    case 0:
    case 1: {
      auto it = std::next(servers_.begin(), static_cast<long>(Roll(servers_.size())));
      it->second.Kill();
      if (Roll(6) == 0) it->second.Wipe();
      if (Roll(2) == 0) it->second.Start(++incarnation_);
      break;
    }
    case 2:
    case 3: {
      SimWorker& worker = workers_[Roll(workers_.size())];
      worker.Kill();
      if (Roll(2) == 0) worker.Start(++incarnation_);
      break;
    }
    case 4:
    case 5:
      RestartScheduler();
      break;
    case 6:  // everybody is silent, and the scheduler listens
      for (uint64_t left = Roll(15); left > 0; --left) {
        now_ += absl::Seconds(1);
        state_->Tick(now_);
        Save();
      }
      break;
    case 7:
      (void)state_->WantCheckpoint(1, now_);
      Save();
      break;
    case 8:
      if (!disk_.empty() && Roll(4) == 0) {
        std::next(disk_.begin(), static_cast<long>(Roll(disk_.size())))->second.damaged = true;
      }
      break;
    case 9: {
      SimServer& server =
          std::next(servers_.begin(), static_cast<long>(Roll(servers_.size())))->second;
      const uint64_t what = setup_.bsp ? 0 : Roll(3);
      if (what == 0) server.Reopen();
      if (what == 1) server.FailCuts(1);
      if (what == 2) server.LosePatience();
      break;
    }
    default:
      for (auto& [name, server] : servers_) {
        if (!server.alive()) server.Start(++incarnation_);
      }
      for (SimWorker& worker : workers_) {
        if (!worker.alive()) worker.Start(++incarnation_);
      }
  }
}

void ClusterSim::Step() {
  now_ += absl::Milliseconds(static_cast<double>(Roll(faults_ ? 200 : 40)));
  const uint64_t what = Roll(10);
  if (what < 3) {
    Sync(std::next(servers_.begin(), static_cast<long>(Roll(servers_.size())))->second);
  } else if (what < 6) {
    Sync(workers_[Roll(workers_.size())]);
  } else if (what < 9) {
    SimWorker& worker = workers_[Roll(workers_.size())];
    if (worker.alive()) worker.Work();
  } else {
    state_->Tick(now_);
    Save();
    Check();
  }
}

void ClusterSim::Run(int fault_steps, int fault_every) {
  Submit();
  for (int i = 0; i < fault_steps && !job().over(); ++i) {
    faults_ = true;
    Step();
    if (fault_every > 0 && Roll(static_cast<uint64_t>(fault_every)) == 0) Fault();
  }
  faults_ = false;
  cut_off_.clear();
  for (auto& [name, server] : servers_) {
    if (!server.alive()) server.Start(++incarnation_);
  }
  for (SimWorker& worker : workers_) {
    if (!worker.alive()) worker.Start(++incarnation_);
  }
  int peace = 0;
  while (!job().over() && ++peace < 20000) Step();
  INFO(state_->Status(1, now_).DebugString());
  REQUIRE(job().over());
}

void ClusterSim::RunDeaf(int fault_every) {
  Submit();
  for (int i = 0; !job().over() && i < 20000; ++i) {
    Step();
    if (Roll(static_cast<uint64_t>(fault_every)) != 0) continue;
    if (Roll(2) == 0) state_->Deaf();
    now_ += absl::Milliseconds(Roll(60'000));  // six leases
    if (Roll(2) == 0) state_->Tick(now_);      // before all that waits
    Save();
  }
  const GetEventsReply all = state_->Events(0, 0, 0);
  for (const Event& e : all.events()) {
    INFO(e.DebugString());
    REQUIRE(e.reason() != "NodeLapsed");
  }
  REQUIRE(job().state().generation() == 1);
}

void ClusterSim::CheckResult() {
  INFO(state_->Status(1, now_).DebugString());
  REQUIRE(job().state().state() == SUCCEEDED);
  if (!setup_.bsp) {
    REQUIRE(job().state().final_bad_lines() == kBadLines);
    REQUIRE(job().state().final_examples() == kLines - kBadLines);
  }
  const std::string folder = job().state().final_checkpoint();
  if (setup_.directory.empty()) {
    REQUIRE(folder.empty());
    REQUIRE(job().state().model_hash().size() == 32);
    return;
  }
  REQUIRE(disk_.count(folder) == 1);
  REQUIRE(disk_[folder].complete);
  int kept = 0;
  for (const auto& [name, other] : disk_) kept += other.complete && !other.damaged;
  REQUIRE(kept <= 2);  // spec.checkpoint.keep
  for (const auto& [name, shard] : disk_[folder].files) {
    if (setup_.bsp) {
      REQUIRE(shard.clock == 8 * kEpochs);
    } else if (job().Hosts(name)) {
      REQUIRE(shard.applied.size() == kLines);  // no task lost
      REQUIRE(shard.EachOnce());
    }
  }
}

void ClusterSim::CheckClosed() {
  const auto closed = [this] {
    return job().state().closing_size() == 0 &&
           std::all_of(servers_.begin(), servers_.end(), [](const auto& server) {
             return server.second.Report().server_jobs_size() == 0;
           });
  };
  // Every call is answered now, and no time passes: what has closed stays so for some rounds.
  int rounds_closed = 0;
  for (int i = 0; i < 200 && rounds_closed < 4; ++i) {
    for (auto& [name, server] : servers_) Sync(server);
    for (SimWorker& worker : workers_) Sync(worker);
    rounds_closed = closed() ? rounds_closed + 1 : 0;
  }
  REQUIRE(rounds_closed == 4);
}

}  // namespace strata::scheduler
