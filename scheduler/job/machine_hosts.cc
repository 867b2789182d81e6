// JobMachine: which session hosts which lane, and when a lane may change its host.
#include <map>
#include <vector>

#include "proto/core/mutation.h"
#include "scheduler/job/lane_hosts.h"
#include "scheduler/job/machine.h"
#include "scheduler/nodes/placement.h"

namespace strata::scheduler {

// By lane: the session that is to host it; 0: there is none.
std::vector<uint64_t> JobMachine::WantedHosts() const {
  std::vector<bool> occupied;
  for (const WorkerSlot& slot : state_.workers()) occupied.push_back(!slot.name().empty());
  std::vector<uint64_t> sessions(lanes());
  const auto held = AssignLanes(lanes(), occupied);
  for (size_t slot = 0; slot < held.size(); ++slot) {
    for (uint32_t lane : held[slot]) {
      sessions[lane] = state_.workers(static_cast<int>(slot)).session();
    }
  }
  return sessions;
}

// By lane: the session of the process that hosts it; 0: none.
std::vector<uint64_t> JobMachine::HostsOfLanes() const {
  std::vector<uint64_t> hosts(state_.lane_hosts().begin(), state_.lane_hosts().end());
  hosts.resize(lanes());
  return hosts;
}

std::vector<std::vector<uint32_t>> JobMachine::LanesOfSlots() const {
  std::vector<std::vector<uint32_t>> held(static_cast<size_t>(state_.workers_size()));
  const std::vector<uint64_t> hosts = HostsOfLanes();
  std::map<uint64_t, size_t> slots;  // by session
  for (size_t slot = 0; slot < held.size(); ++slot) {
    const uint64_t session = state_.workers(static_cast<int>(slot)).session();
    if (session != 0) slots[session] = slot;
  }
  for (uint32_t lane = 0; lane < hosts.size(); ++lane) {
    const auto slot = slots.find(hosts[lane]);
    if (slot != slots.end()) held[slot->second].push_back(lane);
  }
  return held;
}

// Whether every server of the job goes by the newest list of sessions. One that is silent counts
// like the others: it may serve workers all the while (the scheduler's silence stops nothing), and
// what it takes pushes of, nobody knows but itself. A lane that waits for it loses nothing, as no
// step ends without that server. The wait ends when it is heard of, when a later process of its
// name has opened the shards (the one before is no server of the job then), and with the
// generation, when another server takes its place.
bool JobMachine::ServersFollow() const {
  for (int i = 0; i < state_.servers_size(); ++i) {
    const bool opened = state_.servers(i).opened_generation() == state_.generation() &&
                        state_.servers(i).opened_session() == servers_[i].session;
    if (!opened || servers_[i].last.lane_epoch() != state_.lane_epoch()) return false;
  }
  return true;
}

void JobMachine::SettleHosts() {
  const std::vector<uint64_t> before = HostsOfLanes();
  const std::vector<uint64_t> wanted = WantedHosts();
  TakeLanes(wanted, state_);
  if (ServersFollow() || STRATA_MUTATION("lanes.given_at_once")) GiveLanes(wanted, state_);
  if (ledger_) LanesMoved(before, HostsOfLanes());
}

}  // namespace strata::scheduler
