// ClusterSim: who hosts lanes, and nodes that the scheduler does not hear.
#include <catch2/catch.hpp>
#include <cstdint>
#include <iterator>
#include <set>
#include <vector>

#include "tests/scheduler/cluster_sim.h"

namespace strata::scheduler {

// When a lane has a new host, no server takes what the one before pushes, if that hosts none now;
// and each takes what the new one pushes.
void ClusterSim::CheckHosts(const std::vector<uint64_t>& hosts) {
  last_hosts_.resize(setup_.lanes);
  const JobStateRecord& state = job().state();
  const std::set<uint64_t> listed(state.lane_sessions().begin(), state.lane_sessions().end());
  for (uint32_t lane = 0; lane < setup_.lanes; ++lane) {
    const uint64_t before = last_hosts_[lane];
    if (hosts[lane] == 0 || hosts[lane] == before) continue;
    last_hosts_[lane] = hosts[lane];
    for (const auto& [name, server] : servers_) {
      INFO(name << " lane " << lane << " from " << before << " to " << hosts[lane]);
      if (server.Find(1, generation_) == nullptr || !job().Hosts(name)) continue;
      if (before != 0 && listed.count(before) == 0) {
        REQUIRE_FALSE(server.Takes(1, {generation_, before}));
      }
      REQUIRE(server.Takes(1, {generation_, hosts[lane]}));
    }
  }
}

void ClusterSim::CutOff() {
  const uint64_t who = Roll(servers_.size() + workers_.size());
  cut_off_ = who < servers_.size() ? std::next(servers_.begin(), static_cast<long>(who))->first
                                   : workers_[who - servers_.size()].name();
}

}  // namespace strata::scheduler
