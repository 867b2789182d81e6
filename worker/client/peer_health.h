// Which servers of a job have not answered, and since when.
#ifndef STRATA_WORKER_CLIENT_PEER_HEALTH_H_
#define STRATA_WORKER_CLIENT_PEER_HEALTH_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"

namespace strata {

// Thread-safe.
class PeerHealth {
 public:
  struct Silent {
    uint32_t server = 0;
    absl::Time since;  // of the first call that had no answer
    absl::Status why;  // of the latest
  };

  // A call to the server ended. Whatever it answers, an error too, it is there; UNAVAILABLE and
  // DEADLINE_EXCEEDED are no answers, and CANCELLED says nothing.
  void OnCall(uint32_t server, const absl::Status& status, absl::Time now);
  // It has another address, or none: calls to the one before say nothing of it.
  void Forget(uint32_t server);
  // By server.
  std::vector<Silent> silent() const;

 private:
  mutable Mutex mu_;
  std::map<uint32_t, Silent> silent_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata

#endif  // STRATA_WORKER_CLIENT_PEER_HEALTH_H_
