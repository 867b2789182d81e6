// Calls whose replies are never read, as of a client that is broken or hostile.
#ifndef STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_UNREAD_CALLS_H_
#define STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_UNREAD_CALLS_H_

#include <memory>
#include <string>

#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/transport/process_tls.h"

namespace strata::testing {

// On one connection. The destructor cancels them.
class UnreadCalls {
 public:
  UnreadCalls(const std::shared_ptr<ProcessTls>& tls, const std::string& address, Role listens);
  ~UnreadCalls();
  // Returns when the request was sent. A port may write a few bytes of the reply, and no more.
  void Call(const std::string& path, const std::string& request);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_UNREAD_CALLS_H_
