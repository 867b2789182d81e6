// The sessions that a job's server has been introduced to, and what their numbers stand for.
#ifndef STRATA_SERVER_PROTOCOL_SESSION_TABLE_H_
#define STRATA_SERVER_PROTOCOL_SESSION_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "proto/core/ids.h"

namespace strata::server {

// A pure machine; one per job and generation. Bounded: beyond kMaxSessions the session that was
// opened first is forgotten; if it still lives it is refused once, and introduces itself again.
// At most kMaxSessions x kRemembered x 16 bytes of numbers (4 MiB); a session that only reads has
// none.
class SessionTable {
 public:
  static constexpr size_t kMaxSessions = 4096;
  // A number is remembered until the session uses one that is greater by a multiple of this; so the
  // last 64 numbers are, of a session that counts.
  static constexpr size_t kRemembered = 64;

  // Returns the session that is forgotten for it.
  std::optional<SessionId> Open(SessionId session);
  bool Known(SessionId session) const { return numbers_.contains(session); }
  size_t size() const { return numbers_.size(); }

  // The session's number stands for `work` from now on. False: it is remembered to stand for other
  // work, and goes on doing so. True where that cannot be told: the number is forgotten, or the
  // session not known.
  bool Use(SessionId session, Sequence number, uint64_t work);

 private:
  struct Used {
    uint64_t number = 0;
    uint64_t work = 0;
  };
  using Numbers = std::array<Used, kRemembered>;  // a number is at its remainder

  std::map<SessionId, std::unique_ptr<Numbers>> numbers_;  // null: none was used
  std::deque<SessionId> order_;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_PROTOCOL_SESSION_TABLE_H_
