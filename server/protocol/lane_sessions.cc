#include "server/protocol/lane_sessions.h"

#include <algorithm>
#include <utility>

#include "proto/core/mutation.h"
#include "proto/wire/session_error.h"

namespace strata::server {

LaneSessions::LaneSessions(uint64_t epoch, std::vector<SessionId> sessions)
    : known_(true), epoch_(epoch), sessions_(std::move(sessions)) {
  std::sort(sessions_.begin(), sessions_.end());
}

absl::Status LaneSessions::Check(SessionId session) const {
  if (!known_ || std::binary_search(sessions_.begin(), sessions_.end(), session) ||
      STRATA_MUTATION("lanes.any_session_taken")) {
    return absl::OkStatus();
  }
  return wire::LanesGone(session, epoch_);
}

}  // namespace strata::server
