// The blocking face of a ServerSession: calls to several servers that wait and are made again until
// each is answered.
#ifndef STRATA_WORKER_CLIENT_BLOCKING_CALLS_H_
#define STRATA_WORKER_CLIENT_BLOCKING_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/transport/transport.h"
#include "proto/wire/buffer.h"
#include "worker/client/cancel_flag.h"
#include "worker/client/mailbox.h"
#include "worker/client/server_session.h"

namespace strata {

struct BlockingCallsOptions {
  // Without mailbox and on_not_open, which BlockingCalls fills in.
  ServerSessionOptions session;
  // CallAll gives up after so long without any good answer; infinite for training.
  absl::Duration give_up_after = absl::InfiniteDuration();
  // When it is set, CallAll returns CANCELLED at once, whatever it waits for. Outlives the calls.
  CancelFlag* cancelled = nullptr;
};

// One thread at a time.
//
// None of a CallAll's calls is in flight when it returns, unless it was cancelled; an OpenSession
// may be whenever a function returns. What is in flight has its request and shares the mailbox, but
// has no hold on this: its answer is mail, which runs in the next call here or never. So this may
// be destroyed at any time. The answer to a call that was cancelled is dropped as it comes,
// whatever it is; the server may have carried the call out, also after the return. The answer to an
// OpenSession counts whenever it comes.
//
// Bound: requests of a CallAll that was cancelled, as many as it had in flight (one for each
// server, or the parts of that), live until they are answered, at most for call_timeout. So those
// in flight are a CallAll's times one more than it was cancelled within call_timeout.
class BlockingCalls {
 public:
  struct Request {
    uint32_t server;
    DataMethod method;
    Buffer bytes;
    // What is sent instead once `bytes`, which name a ticket, have failed: the same with keys.
    std::function<absl::StatusOr<std::vector<Buffer>>()> with_keys = nullptr;
  };
  // What an answer says. OK: it is good; UNAVAILABLE: not yet, ask again; DATA_LOSS: it cannot be
  // read, ask again; else final.
  using Accept = std::function<absl::Status(size_t request, const Buffer& reply)>;

  explicit BlockingCalls(const BlockingCallsOptions& options);

  // Whether every server is open and takes rows on the session's device. Tries each closed one
  // once; one that cannot be opened now takes none: the call at hand will try to open it.
  bool OpenAndAllTakeRows();
  // Makes each request, and again until it was answered and `accept` returned OK for it. An error
  // is returned when the other calls were answered, too; CANCELLED is not kept waiting.
  absl::Status CallAll(std::vector<Request> requests, const Accept& accept);

  // Of the last CallAll: a server that was to be sent rows on a device takes none any more. The
  // calls to the others may have been received.
  bool offer_ended() const { return offer_ended_; }
  // Of the last CallAll: a call was made again that may have been carried out before. Not one that
  // waited for its server to be open or to have an address, and not one that was refused.
  bool tried_again() const { return tried_again_; }
  TicketLedger& tickets() { return session_.tickets(); }

 private:
  bool cancelled() const { return o_.cancelled != nullptr && o_.cancelled->set(); }
  void LookIfCancelled();
  // Whether CallAll has something to wait for.
  bool MustWait();
  void Send(size_t index);
  void OnReply(size_t index, ServerSession::Epoch sent, const absl::StatusOr<Buffer>& reply);
  void SendAgain(size_t index);
  void OnNotOpen(const absl::Status& why);
  // What failed is tried again, unless nothing was answered well for too long.
  void MayGiveUp(const absl::Status& why);
  bool over() const { return !end_.ok() || offer_ended_; }

  const BlockingCallsOptions o_;
  const std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  ServerSession session_;
  // Of the last CallAll.
  std::vector<Request> requests_;
  const Accept* accept_ = nullptr;  // null outside CallAll
  size_t missing_ = 0;              // requests that were not accepted yet
  size_t in_flight_ = 0;
  absl::Time last_success_;
  absl::Status end_;  // what it returns, once it is known
  bool offer_ended_ = false;
  bool tried_again_ = false;
};

}  // namespace strata

#endif  // STRATA_WORKER_CLIENT_BLOCKING_CALLS_H_
