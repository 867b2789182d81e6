// Whose pushes and marks a shard takes, and who has tickets: the sessions that host lanes of the
// job.
#ifndef STRATA_SERVER_PROTOCOL_LANE_SESSIONS_H_
#define STRATA_SERVER_PROTOCOL_LANE_SESSIONS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"

namespace strata::server {

// A value. The scheduler says which sessions host lanes, with every directive, and counts the
// changes (ServerJobDirective.lane_epoch). Each shard has the newest on its executor, where pushes
// are applied: so what comes after it in the shard's queue is judged by it, and a shard that has it
// applies nothing of another session any more. A server says so to the scheduler when all its
// shards have it, and only then are the lanes of a session that left given to others.
//
// What a shard holds already of a synchronous step stays: it was received, and OK was said. The job
// itself goes by the newest list for tickets, which no shard gives.
class LaneSessions {
 public:
  // Nothing was told: every session is taken.
  LaneSessions() = default;
  LaneSessions(uint64_t epoch, std::vector<SessionId> sessions);

  // PERMISSION_DENIED (wire::IsLanesGone): the session hosts no lanes.
  absl::Status Check(SessionId session) const;
  // 0: nothing was told.
  uint64_t epoch() const { return epoch_; }

 private:
  bool known_ = false;
  uint64_t epoch_ = 0;
  std::vector<SessionId> sessions_;  // ascending; as many as the job has workers
};

}  // namespace strata::server

#endif  // STRATA_SERVER_PROTOCOL_LANE_SESSIONS_H_
