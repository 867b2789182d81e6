// A worker's connections to a job's servers.
// Tested by tests/worker/client/server_session_test.cc
#ifndef STRATA_WORKER_CLIENT_SERVER_LINKS_H_
#define STRATA_WORKER_CLIENT_SERVER_LINKS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "proto/core/mutex.h"
#include "proto/runtime/base/id_source.h"
#include "proto/runtime/credentials/caller.h"
#include "proto/runtime/transport/transport.h"
#include "worker/client/peer_channel.h"
#include "worker/client/peer_health.h"

namespace strata {

// Channels by server index; peers change when servers restart. Thread-safe.
class ServerLinks {
 public:
  // `transport` and `random` must outlive the links. Calls are `caller`'s. `random` spreads what
  // those who use them wait before they try again (proto/runtime/base/backoff.h); null: it is not
  // spread.
  ServerLinks(DataTransport* transport, uint32_t servers, Caller caller,
              IdSource* random = nullptr);

  // Connects where an address or a name changed; an empty address means that the server has none
  // now. Where another process has a server's place, calls to the one before end with CANCELLED,
  // and its answers are dropped: a head that was superseded may say what is not so any more.
  void SetPeers(const std::vector<DataPeer>& peers);

  // Null while the server has no address.
  std::shared_ptr<DataChannel> Channel(uint32_t server) const;
  uint32_t servers() const { return servers_; }
  // Of all calls by these links; calls in flight keep it.
  const std::shared_ptr<PeerHealth>& health() const { return health_; }
  IdSource* random() const { return random_; }

 private:
  DataTransport* const transport_;
  const uint32_t servers_;
  const Caller caller_;
  IdSource* const random_;
  const std::shared_ptr<PeerHealth> health_ = std::make_shared<PeerHealth>();
  mutable Mutex mu_;
  std::vector<DataPeer> peers_ ABSL_GUARDED_BY(mu_);
  std::vector<std::shared_ptr<DataChannel>> channels_ ABSL_GUARDED_BY(mu_);
  struct Known {
    DataPeer peer;
    std::shared_ptr<PeerCalls> calls;
  };
  std::vector<Known> known_ ABSL_GUARDED_BY(mu_);  // by server: the last one that had an address
};

}  // namespace strata

#endif  // STRATA_WORKER_CLIENT_SERVER_LINKS_H_
