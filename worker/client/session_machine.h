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
#include "proto/runtime/base/id_source.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message.h"
#include "worker/client/retry_policy.h"
#include "worker/client/ticket_ledger.h"

namespace strata {

// A session at a server is closed, opening or open. No I/O, no clock, one thread at a time.
//
// An error of a call does what its class says (retry_policy.h). One that goes away with time is a
// failure and makes calls wait: 10, 20, 40 ... 1000 ms, spread, until a call is answered well; that
// the session was opened is no such answer. Calls that were sent side by side and broke together
// are one failure; what was sent in an older session is none, and does not close the newer one.
//
// Every error ends all tickets of the server, whichever session the call was of: the call goes
// again, and what goes again goes with keys. A stale ticket's call goes at once, and would meet the
// same error for ever with the same ticket. What a ticket stands for needs no such care: servers
// know their own tickets, and a push's checksum covers the keys that it names.
class SessionMachine {
 public:
  // When something was sent to a server, by what had happened there: it grows when OpenSession is
  // sent, when the session is open, and with each failure.
  enum class Epoch : uint64_t { kNotSent };  // the server had no address
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

  // `device`: where the worker's rows lie; empty: nowhere that a server could take them. `random`
  // spreads the waits; null: they are not.
  SessionMachine(uint32_t servers, std::string device, IdSource* random = nullptr);

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
  // Of what is sent now.
  Epoch epoch(uint32_t server) const { return servers_[server].epoch; }
  // Whether a call that was sent then and failed so may have been carried out. A server that does
  // not know its session or its ticket has refused it as a whole.
  static bool MayHaveArrived(Epoch sent, const absl::Status& status);

  void OnOpenSent(uint32_t server);
  // The answer to OpenSession. Opens the session (OK), or returns the error, which is a failure
  // unless it is final. A server that is another process than before, or has another shard map,
  // knows none of the tickets.
  absl::Status OnOpenAnswered(uint32_t server, const absl::StatusOr<Buffer>& reply, absl::Time now);
  // The server has no address.
  void OnUnreachable(uint32_t server, absl::Time now);
  // A call that was sent then broke, was refused, or its answer cannot be read.
  Retry OnError(uint32_t server, Epoch sent, const absl::Status& status, absl::Time now);
  // A call was answered well.
  void OnAnswered(uint32_t server) { servers_[server].retry.OnSuccess(); }
  // The sessions are to be opened again before the next call. One that is being opened will do.
  void CloseAll();

  // Of the calls of this session. Errors end a server's tickets here.
  TicketLedger& tickets() { return tickets_; }

 private:
  static constexpr Epoch kFirst = Epoch(1);
  static Epoch Next(Epoch epoch) { return Epoch(static_cast<uint64_t>(epoch) + 1); }
  enum class Phase : uint8_t { kClosed, kOpening, kOpen };
  struct Server {
    Phase phase = Phase::kClosed;
    Epoch epoch = kFirst;
    Epoch opened = kFirst;  // that of the session's first call
    wire::ServerState state;
    bool takes_rows = false;
    RetryPolicy retry{nullptr};
    absl::Time not_before = absl::InfinitePast();
  };
  void BackOff(Server& server, absl::Time now);

  const std::string device_;
  std::vector<Server> servers_;
  TicketLedger tickets_;
};

}  // namespace strata

#endif  // STRATA_WORKER_CLIENT_SESSION_MACHINE_H_
