// What a worker knows of its session at each server of a job, and what an error or an answer makes
// of it: the pure half of ServerSession.
#ifndef STRATA_WORKER_CLIENT_SESSION_MACHINE_H_
#define STRATA_WORKER_CLIENT_SESSION_MACHINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message.h"
#include "worker/client/retry_policy.h"
#include "worker/client/ticket_ledger.h"

namespace strata {

// A session at a server is closed, opening or open. No I/O, no clock, one thread at a time.
//
// An error of a call does what its class says (retry_policy.h); each but a stale ticket's ends all
// tickets of the server and makes calls wait: 10, 20, 40 ... 1000 ms, until a call is answered.
class SessionMachine {
 public:
  // What a call to a server waits for.
  enum class Wait : uint8_t {
    kNothing,  // it may go
    kTime,     // not_before
    kOpening,  // the answer to OpenSession
    kClosed,   // somebody must send OpenSession, and then call OnOpenSent
  };
  // When a call that failed goes again.
  enum class Retry : uint8_t {
    kAtOnce,  // its ticket was stale: with keys
    kLater,   // when there is nothing to wait for
    kNever,   // the error is final
  };

  // `device`: where the worker's rows lie; empty: nowhere that a server could take them.
  SessionMachine(uint32_t servers, std::string device);

  uint32_t servers() const { return static_cast<uint32_t>(servers_.size()); }
  Wait WaitOf(uint32_t server, absl::Time now) const;
  absl::Time not_before(uint32_t server) const { return servers_[server].not_before; }
  bool open(uint32_t server) const { return servers_[server].phase == Phase::kOpen; }
  bool opening(uint32_t server) const { return servers_[server].phase == Phase::kOpening; }
  // What the server said when it was opened last.
  const wire::ServerState& state(uint32_t server) const { return servers_[server].state; }
  // Whether the server takes, and gives, rows on the worker's device, as it said then.
  bool takes_rows(uint32_t server) const { return servers_[server].takes_rows; }
  bool all_take_rows() const;

  void OnOpenSent(uint32_t server);
  // The answer to OpenSession. Opens the session (OK), or returns the error, which counts as
  // OnError's. A server that is another process than before, or has another shard map, knows none
  // of the tickets.
  absl::Status OnOpenAnswered(uint32_t server, const absl::StatusOr<Buffer>& reply, absl::Time now);
  // The server has no address.
  void OnUnreachable(uint32_t server, absl::Time now);
  // A call broke, was refused, or its answer cannot be read.
  Retry OnError(uint32_t server, const absl::Status& status, absl::Time now);
  // A call was answered well.
  void OnAnswered(uint32_t server) { servers_[server].retry.OnSuccess(); }
  // The sessions are to be opened again before the next call. One that is being opened will do.
  void CloseAll();

  // Of the calls of this session. Errors end a server's tickets here.
  TicketLedger& tickets() { return tickets_; }

 private:
  enum class Phase : uint8_t { kClosed, kOpening, kOpen };
  struct Server {
    Phase phase = Phase::kClosed;
    wire::ServerState state;
    bool takes_rows = false;
    RetryPolicy retry;
    absl::Time not_before = absl::InfinitePast();
  };
  void BackOff(Server& server, absl::Time now);

  const std::string device_;
  std::vector<Server> servers_;
  TicketLedger tickets_;
};

}  // namespace strata

#endif  // STRATA_WORKER_CLIENT_SESSION_MACHINE_H_
