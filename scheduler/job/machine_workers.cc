// Which workers a job has: chosen first, lost, restarted, and taken in.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "scheduler/job/machine.h"
#include "scheduler/nodes/placement.h"
#include "scheduler/nodes/troubles.h"

namespace strata::scheduler {
namespace {

bool HasWorker(const JobStateRecord& state) {
  return std::any_of(state.workers().begin(), state.workers().end(),
                     [](const WorkerSlot& slot) { return !slot.name().empty(); });
}

}  // namespace

std::vector<Candidate> JobMachine::Candidates(const ClusterView& cluster, NodeRole role) const {
  std::vector<Candidate> candidates;
  const Rooms rooms = role == SERVER && cluster.rooms ? cluster.rooms() : Rooms();
  for (const auto& [name, node] : cluster.members->nodes()) {
    if (!node.alive || node.record.role() != role || Hosts(name)) continue;
    if (role == SERVER && GoesOnWithServers() && !WaitsFor(name)) continue;
    const auto jobs = cluster.jobs_of_node->find(name);
    Candidate candidate = {.name = name,
                           .jobs = jobs == cluster.jobs_of_node->end() ? 0 : jobs->second,
                           .cores = node.record.cores()};
    if (role == WORKER) (void)ComputesWith(job().worker(), node.record, candidate);
    if (role == SERVER) {
      candidate.able = HoldsGpuTier(job().storage(), node.record);
      if (const auto room = rooms.find(name); room != rooms.end()) candidate.room = room->second;
    }
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

void JobMachine::ChooseFirstWorkers(const ClusterView& cluster, absl::Time now) {
  auto servers = FreeChains(cluster);
  if (!servers.ok()) return WaitForServers(cluster, servers.status(), now);
  auto workers = ChooseWorkers(Candidates(cluster, WORKER), job().replicas().workers(), bsp(), "");
  if (absl::IsFailedPrecondition(workers.status())) {
    return End(FAILED, "MixedDevices", workers.status().message(), now);
  }
  if (!workers.ok()) return SayAgain("WaitingForWorkers", workers.status().message(), now);
  for (const std::string& name : *workers) {
    const Node* node = cluster.members->Find(name);
    WorkerSlot* slot = state_.add_workers();
    slot->set_name(name);
    slot->set_session(node->record.session());
    Candidate chosen;
    (void)ComputesWith(job().worker(), node->record, chosen);
    state_.set_numerics_id(chosen.numerics_id);
  }
  workers_.assign(workers->size(), {});
  state_.set_phase(INDEXING);
  if (index_) return;  // it has waited for room since
  SayAgain("Indexing", absl::StrCat("worker ", workers->front(), " indexes the input"), now);
}

void JobMachine::LeaveWorker(int slot) {
  ForgetTroubles(state_.workers(slot).name(), *state_.mutable_troubles());
  const WorkerJobReport& last = workers_[slot].last;
  if (bsp()) {  // else tasks are counted
    state_.mutable_gone()->set_examples(state_.gone().examples() + last.examples());
    state_.mutable_gone()->set_bad_lines(state_.gone().bad_lines() + last.bad_lines());
  }
  state_.mutable_gone()->set_refused_rows(state_.gone().refused_rows() + last.refused_rows());
  state_.mutable_gone()->set_clipped_rows(state_.gone().clipped_rows() + last.clipped_rows());
  workers_[slot] = {};
  state_.mutable_workers(slot)->Clear();
}

void JobMachine::FillWorkers(const ClusterView& cluster, absl::Time now) {
  std::vector<std::pair<std::string, std::string>> left;  // reason, who and why
  for (int i = 0; i < state_.workers_size(); ++i) {
    const std::string name = state_.workers(i).name();
    if (name.empty()) continue;
    const Node* node = cluster.members->Find(name, WORKER);
    if (node != nullptr && node->alive && node->record.session() == state_.workers(i).session()) {
      continue;
    }
    LeaveWorker(i);
    if (node == nullptr || !node->alive) {
      left.emplace_back("WorkerLost", absl::StrCat("worker ", name, " is silent"));
      continue;
    }
    Candidate again;
    const bool computes = ComputesWith(job().worker(), node->record, again);
    if (!computes || (bsp() && again.numerics_id != state_.numerics_id())) {
      left.emplace_back("WorkerChanged",
                        absl::StrCat("worker ", name, " was restarted on ", again.device_class,
                                     ", which this job cannot use"));
      continue;
    }
    state_.mutable_workers(i)->set_name(name);
    state_.mutable_workers(i)->set_session(node->record.session());
    Say("WorkerRestarted", absl::StrCat("worker ", name, " was restarted; it keeps its lanes"),
        now);
  }
  const auto candidate = [&] {
    return ChooseWorkers(Candidates(cluster, WORKER), 1, bsp(), state_.numerics_id());
  };
  const bool others = left.empty() || HasWorker(state_) || candidate().ok();
  for (const auto& [reason, who] : left) {
    Say(reason,
        absl::StrCat(who, others ? "; others take its lanes"
                                 : "; the job has no worker left, and stands until there is one: "
                                   "start strata-worker"),
        now);
  }
  for (int i = 0; i < state_.workers_size(); ++i) {
    if (!state_.workers(i).name().empty()) continue;
    auto chosen = candidate();
    if (!chosen.ok()) break;
    state_.mutable_workers(i)->set_name(chosen->front());
    state_.mutable_workers(i)->set_session(
        cluster.members->Find(chosen->front())->record.session());
    Say("WorkerJoined", absl::StrCat("worker ", chosen->front(), " takes part"), now);
  }
}

}  // namespace strata::scheduler
