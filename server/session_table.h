// The sessions that a job's server has been introduced to.
#ifndef STRATA_SERVER_SESSION_TABLE_H_
#define STRATA_SERVER_SESSION_TABLE_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <set>

#include "proto/core/ids.h"

namespace strata::server {

// A pure machine; one per job and generation. Bounded: beyond kMaxSessions the session that was
// opened first is forgotten; if it still lives it is refused once, and introduces itself again.
class SessionTable {
 public:
  static constexpr size_t kMaxSessions = 4096;

  // Returns the session that is forgotten for it.
  std::optional<SessionId> Open(SessionId session) {
    if (!known_.insert(session).second) return std::nullopt;
    order_.push_back(session);
    if (order_.size() <= kMaxSessions) return std::nullopt;
    const SessionId forgotten = order_.front();
    known_.erase(forgotten);
    order_.pop_front();
    return forgotten;
  }
  bool Known(SessionId session) const { return known_.contains(session); }
  size_t size() const { return known_.size(); }

 private:
  std::set<SessionId> known_;
  std::deque<SessionId> order_;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_SESSION_TABLE_H_
