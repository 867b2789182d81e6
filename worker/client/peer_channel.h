// A connection to what a server of a job is at one time: its calls end when another process has
// that place.
// Tested by tests/worker/client/server_session_test.cc
#ifndef STRATA_WORKER_CLIENT_PEER_CHANNEL_H_
#define STRATA_WORKER_CLIENT_PEER_CHANNEL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/runtime/transport/transport.h"
#include "proto/wire/buffer.h"

namespace strata {

// The calls to one peer, over whatever connections. Thread-safe. Bound: the calls in flight, which
// whoever makes them bounds.
class PeerCalls {
 public:
  // Another process has the peer's place: answers calls in flight, and those to come, with `why`.
  // What the peer answers later goes nowhere. A call with values on a device is answered when the
  // peer has answered it, for until then the peer may write there.
  void Replace(const absl::Status& why);

 private:
  friend class PeerChannel;
  // An error: the peer was replaced, and the call is not to be made; `done` was not taken.
  absl::StatusOr<uint64_t> Begin(bool there, DataReply& done);
  void Answer(uint64_t call, absl::StatusOr<Buffer> reply);

  Mutex mu_;
  absl::Status replaced_ ABSL_GUARDED_BY(mu_);  // why, once it is
  uint64_t next_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint64_t, DataReply> plain_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, DataReply> there_ ABSL_GUARDED_BY(mu_);  // with values on a device
};

// One connection to the peer.
class PeerChannel : public DataChannel {
 public:
  PeerChannel(std::shared_ptr<DataChannel> channel, std::shared_ptr<PeerCalls> calls)
      : channel_(std::move(channel)), calls_(std::move(calls)) {}

  void Call(DataMethod method, Buffer request, absl::Duration timeout, DataReply done) override;

 private:
  const std::shared_ptr<DataChannel> channel_;
  const std::shared_ptr<PeerCalls> calls_;  // calls in flight keep it
};

}  // namespace strata

#endif  // STRATA_WORKER_CLIENT_PEER_CHANNEL_H_
