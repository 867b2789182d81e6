// ServerJob: which sessions host lanes, told by the scheduler and confirmed to it.
#include <algorithm>
#include <utility>
#include <vector>

#include "proto/core/mutation.h"
#include "server/job/server_job.h"
#include "server/protocol/lane_sessions.h"

namespace strata::server {

void ServerJob::FollowSessions(const ServerJobDirective& directive) {
  if (!directive.lane_sessions_known()) return;
  std::vector<SessionId> hosts;
  for (const uint64_t session : directive.lane_sessions()) hosts.emplace_back(session);
  const LaneSessions sessions(directive.lane_epoch(), std::move(hosts));
  std::vector<TicketBook::KeysPtr> ended;
  {
    absl::MutexLock lock(&mu_);
    if (lane_sessions_.epoch() == directive.lane_epoch()) return;
    lane_sessions_ = sessions;
    ended = tickets_.CloseOthers([&](SessionId session) { return sessions.Check(session).ok(); });
  }
  Drop(ended);
  for (const auto& runner : runners_) runner->SetSessions(sessions);
}

absl::Status ServerJob::CheckTakesTickets(SessionId session) const {
  if (STRATA_MUTATION("lanes.tickets_for_any")) return absl::OkStatus();
  return lane_sessions_.Check(session);
}

// That of the shard that is behind the others: what is confirmed holds for every push that is in
// any queue here.
uint64_t ServerJob::LaneEpoch() const {
  uint64_t epoch = 0;
  {
    absl::MutexLock lock(&mu_);
    epoch = lane_sessions_.epoch();
  }
  if (STRATA_MUTATION("lanes.confirmed_before_fence")) return epoch;
  for (const auto& runner : runners_) {
    epoch = std::min<uint64_t>(epoch, runner->view().lane_epoch);
  }
  return epoch;
}

}  // namespace strata::server
