// The connections that a port has at a time: so many, and all of them ended from outside.
// Tested by tests/proto/runtime/metrics/metrics_server_test.cc
#ifndef STRATA_PROTO_RUNTIME_METRICS_OPEN_CONNECTIONS_H_
#define STRATA_PROTO_RUNTIME_METRICS_OPEN_CONNECTIONS_H_

#include <cstddef>
#include <set>

#include "absl/base/thread_annotations.h"
#include "proto/core/mutex.h"

namespace strata {

// Thread-safe.
class OpenConnections {
 public:
  explicit OpenConnections(size_t most) : most_(most) {}

  // Takes a place; waits while all are taken, unless EndAll was called. A place that was taken is
  // given back by Leave.
  void AwaitPlace();
  void Leave();

  // Between these, EndAll may end the socket. False: EndAll was called; not to be used.
  bool Add(int socket);
  void Remove(int socket);

  // Sockets are shut down, so that who reads or writes them ends; nobody is let in any more.
  void EndAll();

 private:
  const size_t most_;
  Mutex mu_;
  size_t taken_ ABSL_GUARDED_BY(mu_) = 0;
  std::set<int> sockets_ ABSL_GUARDED_BY(mu_);  // at most `most_`
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_METRICS_OPEN_CONNECTIONS_H_
