// ServerJob: which sessions host lanes, told by the scheduler and confirmed to it.
#include <algorithm>
#include <vector>

#include "proto/core/mutation.h"
#include "server/job/server_job.h"
#include "server/protocol/lane_sessions.h"

namespace strata::server {

void ServerJob::FollowSessions(const ServerJobDirective& directive) {
  if (!directive.lane_sessions_known()) return;
  {
    absl::MutexLock lock(&mu_);
    if (lane_epoch_ == directive.lane_epoch()) return;
    lane_epoch_ = directive.lane_epoch();
  }
  std::vector<SessionId> hosts;
  for (const uint64_t session : directive.lane_sessions()) hosts.emplace_back(session);
  for (const auto& runner : runners_) {
    runner->SetSessions(LaneSessions(directive.lane_epoch(), hosts));
  }
}

// That of the shard that is behind the others: what is confirmed holds for every push that is in
// any queue here.
uint64_t ServerJob::LaneEpoch() const {
  uint64_t epoch = 0;
  {
    absl::MutexLock lock(&mu_);
    epoch = lane_epoch_;
  }
  if (STRATA_MUTATION("lanes.confirmed_before_fence")) return epoch;
  for (const auto& runner : runners_) {
    epoch = std::min<uint64_t>(epoch, runner->view().lane_epoch);
  }
  return epoch;
}

}  // namespace strata::server
