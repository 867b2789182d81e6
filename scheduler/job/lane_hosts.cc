#include "scheduler/job/lane_hosts.h"

#include <algorithm>
#include <set>

namespace strata::scheduler {

void TakeLanes(const std::vector<uint64_t>& wanted, JobStateRecord& state) {
  auto& hosts = *state.mutable_lane_hosts();
  hosts.Resize(static_cast<int>(wanted.size()), 0);
  for (int lane = 0; lane < hosts.size(); ++lane) {
    if (hosts[lane] != wanted[static_cast<size_t>(lane)]) hosts[lane] = 0;
  }
  std::set<uint64_t> sessions(wanted.begin(), wanted.end());
  sessions.erase(0);
  const auto& told = state.lane_sessions();
  if (state.lane_epoch() > 0 &&
      std::equal(told.begin(), told.end(), sessions.begin(), sessions.end())) {
    return;
  }
  state.mutable_lane_sessions()->Assign(sessions.begin(), sessions.end());
  state.set_lane_epoch(state.lane_epoch() + 1);
}

void GiveLanes(const std::vector<uint64_t>& wanted, JobStateRecord& state) {
  state.mutable_lane_hosts()->Assign(wanted.begin(), wanted.end());
}

}  // namespace strata::scheduler
