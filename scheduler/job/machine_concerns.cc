// JobMachine: what is slow or stuck, told while it lasts.
#include <optional>
#include <utility>
#include <vector>

#include "scheduler/job/concerns/find.h"
#include "scheduler/job/concerns/job_view.h"
#include "scheduler/job/concerns/stuck.h"
#include "scheduler/job/machine.h"

namespace strata::scheduler {

JobView JobMachine::ViewOf(const Membership& members) const {
  JobView view;
  view.members = &members;
  view.troubles = &state_.troubles();
  view.bsp = bsp();
  for (int i = 0; i < state_.servers_size(); ++i) {
    view.servers.push_back({state_.servers(i).name(), &servers_[i].last});
    for (const auto& [name, copy] : servers_[i].chain.copies) {
      if (name != state_.servers(i).name()) view.copies.push_back({name, &copy.last});
    }
  }
  for (int i = 0; i < state_.workers_size(); ++i) {
    view.workers.push_back({state_.workers(i).name(), &workers_[i].last});
    view.nodes.insert(state_.workers(i).name());
  }
  for (const std::string& server : Holders()) view.nodes.insert(server);
  return view;
}

void JobMachine::LookAround(const ClusterView& cluster, absl::Time now) {
  if (over() || state_.phase() < OPENING) return concerns_.Clear();
  const JobView view = ViewOf(*cluster.members);
  std::vector<Concern> seen;
  FindTroubles(view, seen);
  FindSilentServers(view, now, seen);
  FindUnreachable(view, now, seen);
  if (state_.phase() == TRAINING) {
    FindSlowWorkers(view, slow_workers_, now, seen);
    const StuckFacts facts = {.progress = Progress(),
                              .generation = state_.generation(),
                              .finished = TrainingFinished(),
                              .max_clock = recovery_.max_clock()};
    if (auto stuck = stuck_.Look(view, facts, now)) seen.push_back(*std::move(stuck));
  } else {
    stuck_.Clear();
  }
  concerns_.Look(std::move(seen), now);
}

}  // namespace strata::scheduler
