// Which tickets a job's server has given and still holds (DESIGN.md section 5, "Tickets").
#ifndef STRATA_SERVER_JOB_TICKET_BOOK_H_
#define STRATA_SERVER_JOB_TICKET_BOOK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/wire/message.h"
#include "server/shard/request_keys.h"

namespace strata::server {

// A pure machine: no threads, clock or disk; one per job and generation, owned by the job. Losing a
// ticket costs its holder a request that is sent again with keys, and nothing else; so whatever is
// short, the oldest goes.
class TicketBook {
 public:
  struct Limits {
    size_t per_session = 0;  // tickets
    uint64_t bytes = 0;      // RequestKeys::TicketBytes of all
  };
  using KeysPtr = std::shared_ptr<RequestKeys>;

  // Two jobs or generations of one process give numbers of their own.
  static uint64_t FirstNumber(Generation generation) { return (generation.value << 40) + 1; }
  // A session's: for every lane the step that it pushes and the one that it pulls, and some that
  // were asked for again.
  static size_t PerSession(uint32_t lanes) { return 2 * size_t{lanes} + 4; }

  TicketBook(uint64_t incarnation, Generation generation, Limits limits)
      : incarnation_(incarnation), next_(FirstNumber(generation)), limits_(limits) {}

  // A ticket for `keys`, which has `fingerprint`. It ends when `step` (not 0) is committed.
  // `dropped`: tickets that had to make room. None (number 0) when the limit is too low for it
  // alone.
  wire::Ticket Add(SessionId session, Step step, uint32_t fingerprint, KeysPtr keys,
                   std::vector<KeysPtr>& dropped);

  // FAILED_PRECONDITION (wire::IsTicketError): not held, another session's, or not of these keys.
  absl::StatusOr<KeysPtr> Find(SessionId session, const wire::Ticket& ticket) const;

  // Every shard has committed `step`. Returns the tickets that ended.
  std::vector<KeysPtr> Committed(Step step);
  std::vector<KeysPtr> Close(SessionId session);
  // Of all sessions but those that `stay`.
  std::vector<KeysPtr> CloseOthers(const std::function<bool(SessionId)>& stay);
  // All of them: shards were moved.
  std::vector<KeysPtr> Clear();

  size_t size() const { return tickets_.size(); }
  uint64_t bytes() const { return bytes_; }

 private:
  struct Entry {
    SessionId session;
    Step step;
    uint64_t bytes = 0;
    uint64_t key_count = 0;
    uint32_t fingerprint = 0;
    KeysPtr keys;
  };
  KeysPtr Remove(uint64_t number);

  const uint64_t incarnation_;
  uint64_t next_;
  const Limits limits_;
  std::map<uint64_t, Entry> tickets_;                   // by number: oldest first
  std::map<SessionId, std::set<uint64_t>> of_session_;  // numbers
  std::set<std::pair<Step, uint64_t>> by_step_;         // those that end with a step
  uint64_t bytes_ = 0;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_JOB_TICKET_BOOK_H_
