// ShardRunner: whose pushes and marks are taken.
#include <utility>

#include "server/shard/runner.h"

namespace strata::server {

// The fence: behind this in the executor's queue nothing of another session is applied, and what
// waits here of one is answered.
void ShardRunner::SetSessions(LaneSessions sessions) {
  Post([this, sessions = std::move(sessions)] {
    sessions_ = sessions;
    for (auto it = held_.begin(); it != held_.end();) {
      absl::Status s = sessions_.Check(it->second.call->fields().header.session);
      if (s.ok()) {
        ++it;
        continue;
      }
      shard_->barrier().Forget(it->first);
      it->second.call->Fail(std::move(s));
      it = held_.erase(it);
    }
    std::erase_if(deferred_, [&](const HeldWindow& window) {
      absl::Status s = sessions_.Check(window.call->fields().header.session);
      if (s.ok()) return false;
      window.call->Fail(std::move(s));
      return true;
    });
    view_.lane_epoch = sessions_.epoch();
  });
}

}  // namespace strata::server
