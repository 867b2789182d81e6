// Whether the neighbours of a copy are there: who notices first tells the scheduler.
// Tested by tests/server/job/chain_test.cc
#ifndef STRATA_SERVER_JOB_PEER_WATCH_H_
#define STRATA_SERVER_JOB_PEER_WATCH_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/transport/transport.h"
#include "proto/strata/control.pb.h"
#include "proto/wire/buffer.h"

namespace strata::server {

// The connection of a copy to another one.
std::shared_ptr<DataChannel> ConnectToCopy(DataTransport& transport, const ChainMember& copy);

// Asks each of them again and again, one call at a time. Thread-safe. Close before it goes.
class PeerWatch : public std::enable_shared_from_this<PeerWatch> {
 public:
  // After an answer; after a connection that broke, which is tried once more before it counts.
  static constexpr absl::Duration kPause = absl::Milliseconds(150);
  static constexpr absl::Duration kTryAgain = absl::Milliseconds(50);
  // Without an answer for so long a peer is silent.
  static constexpr absl::Duration kPatience = absl::Seconds(1);

  struct Peer {
    ChainMember copy;
    Buffer question;  // a Forward without entries
  };

  // Both outlive it.
  PeerWatch(DataTransport* transport, Timer* timer) : transport_(transport), timer_(timer) {}
  ~PeerWatch() { Close(); }

  // From now on these; what is known of one that stays is kept.
  void Watch(std::vector<Peer> peers);
  void Close();
  std::vector<PeerTrouble> Troubles() const;

 private:
  struct Watched {
    uint64_t number = 0;
    Peer peer;
    std::shared_ptr<DataChannel> channel;
    uint64_t incarnation = 0;
    uint32_t failures = 0;  // in a row
    std::optional<absl::Time> bad_since;
    PeerTrouble::Kind kind = PeerTrouble::KIND_UNSPECIFIED;
    std::string message;
  };
  void Ask(uint64_t number);
  void AskAt(uint64_t number, absl::Time when) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Answered(uint64_t number, absl::Time asked, const absl::StatusOr<Buffer>& reply);
  Watched* Find(uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  DataTransport* const transport_;
  Timer* const timer_;
  mutable absl::Mutex mu_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t last_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<Watched> watched_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata::server

#endif  // STRATA_SERVER_JOB_PEER_WATCH_H_
