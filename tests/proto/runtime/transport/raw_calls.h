// Calls of any method at a port that asks who calls.
#ifndef STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_RAW_CALLS_H_
#define STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_RAW_CALLS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/transport/process_tls.h"

namespace strata::testing {

struct RawCall {
  std::string address;
  Role listens = Role::kServer;  // who is expected there
  std::string path;              // "/strata.DataPlane/Pull"
  std::string body = "";
  std::string session = "";  // credential; empty: none
  bool streams = false;      // the reply has more than one message: the call ends with the first
};
// A connection of its own for each. Null: without TLS.
absl::Status CallRaw(const std::shared_ptr<ProcessTls>& tls, const RawCall& call);

}  // namespace strata::testing

#endif  // STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_RAW_CALLS_H_
