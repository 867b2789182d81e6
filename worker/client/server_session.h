// A worker's session at the servers of a job: opens it, opens it again where it was lost, and backs
// off.
#ifndef STRATA_WORKER_CLIENT_SERVER_SESSION_H_
#define STRATA_WORKER_CLIENT_SERVER_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/transport/transport.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message.h"
#include "worker/client/mailbox.h"
#include "worker/client/server_links.h"
#include "worker/client/session_machine.h"

namespace strata {

struct ServerSessionOptions {
  ServerLinks* links = nullptr;  // outlives the session
  Timer* timer = Timer::Real();  // outlives the session
  // Of the thread that owns the session. Calls in flight keep it.
  std::shared_ptr<Mailbox> mailbox;
  wire::Header header;
  JobIdentity identity;  // which job header.job is
  // Of the memory where the worker's rows may lie; empty: they go in messages.
  std::string device;
  // How long one call may take.
  absl::Duration call_timeout = absl::Seconds(20);
  // A server has no address, or OpenSession failed. Comes as mail. May be empty. A final error
  // (Classify) leaves the session closed; after any other, what waits for it is tried again.
  std::function<void(uint32_t server, const absl::Status& why)> on_not_open;
};

// The I/O around SessionMachine, driven by events: answers and alarms come as mail. One thread owns
// a session; all functions and callbacks run there.
//
//   if (!session.Ready(server)) return session.Defer(server, [this] { Pull(); });
//   session.Call(server, DataMethod::kPull, request, [this](Epoch sent, StatusOr<Buffer> reply) {
//     if (reply.ok()) return session.OnAnswered(server), Use(*reply);
//     if (session.OnError(server, sent, reply.status()) == Retry::kNever) ...
//   });
//   while (!done) session.Wait();
//
// Closures that wait here, one for each deferred call, are the caller's to bound.
class ServerSession {
 public:
  using Retry = SessionMachine::Retry;
  using Epoch = SessionMachine::Epoch;
  // The answer to a call, and when it was sent: kNotSent where the server had no address.
  using Done = std::function<void(Epoch sent, absl::StatusOr<Buffer> reply)>;

  explicit ServerSession(ServerSessionOptions options);
  ~ServerSession();
  ServerSession(const ServerSession&) = delete;
  ServerSession& operator=(const ServerSession&) = delete;

  // Whether a call to the server may go now. If not, this does what is needed (opens the session,
  // or sets an alarm), and mail comes when it is worth while to ask again.
  bool Ready(uint32_t server);
  // Wait runs `work` once the server is ready.
  void Defer(uint32_t server, std::function<void()> work) {
    deferred_[server].push_back(std::move(work));
  }
  void DropDeferred();
  // Sends, ready or not; `done` gets the answer, or UNAVAILABLE where the server has no address. It
  // runs as mail only, so never after the owner has left its mailbox: the session may be destroyed
  // while calls, or an OpenSession, are in flight.
  void Call(uint32_t server, DataMethod method, Buffer request, Done done);
  // Of calls that are in flight: `done` is never run, and what the answer holds goes when it comes.
  // The requests live until then, at most for call_timeout. An OpenSession is no such call.
  void ForgetCalls() { o_.mailbox->EndRound(); }

  // As SessionMachine's.
  Retry OnError(uint32_t server, Epoch sent, const absl::Status& status) {
    return machine_.OnError(server, sent, status, o_.timer->Now());
  }
  void OnAnswered(uint32_t server) { machine_.OnAnswered(server); }
  void CloseAll() { machine_.CloseAll(); }
  TicketLedger& tickets() { return machine_.tickets(); }
  const SessionMachine& machine() const { return machine_; }
  const wire::Header& header() const { return o_.header; }

  // Runs deferred work whose server is ready, and then the mail; without such work it waits for
  // mail first.
  void Wait();

 private:
  void SendOpen(uint32_t server, const std::shared_ptr<DataChannel>& channel);
  void SetAlarm(uint32_t server);
  // Of a call that is sent now: hands the answer to `done` as mail, unless it is forgotten.
  DataReply ToOwner(uint32_t server, Mailbox::Round round, Done done) const;
  bool RunDeferred();
  void SayNotOpen(uint32_t server, const absl::Status& why) {
    if (o_.on_not_open) o_.on_not_open(server, why);
  }

  const ServerSessionOptions o_;
  SessionMachine machine_;
  std::vector<std::vector<std::function<void()>>> deferred_;  // by server
  std::vector<absl::Time> alarm_;                             // by server: the last one set
};

}  // namespace strata

#endif  // STRATA_WORKER_CLIENT_SERVER_SESSION_H_
