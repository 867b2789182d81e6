// The data plane over gRPC: raw byte buffers on completion queues, one copy on receipt (into pooled
// memory) and none on sending. Any gRPC client can call: the methods are those of service DataPlane
// in proto/strata/data.proto.
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_TRANSPORT_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_TRANSPORT_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "proto/runtime/transport/bind_policy.h"
#include "proto/runtime/transport/caller_limits.h"
#include "proto/runtime/transport/keepalive.h"
#include "proto/runtime/transport/port_limits.h"
#include "proto/runtime/transport/process_tls.h"
#include "proto/runtime/transport/transport.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace strata {

struct GrpcTransportOptions {
  // What Listen may bind to.
  BindScope scope = BindScope::kLoopbackOnly;
  // Threads per listener; each polls a completion queue of its own and runs handlers, which should
  // therefore hand long work to an executor.
  size_t server_threads = 2;
  // Threads of this transport that run the `done` callbacks of its channels; a channel stays on
  // one.
  size_t client_threads = 1;
  // Calls that a listener holds open; more are answered with RESOURCE_EXHAUSTED. Requests in flight
  // take at most this many times kMaxMessageBytes.
  size_t max_calls_in_flight = 4096;
  // By which channels that are made give up a silent server (keepalive.h); outlives the transport.
  // Null: the default lease.
  const KnownLease* lease = nullptr;
  // Of each caller who has proven who he is, at each listener.
  CallerLimitsOptions caller_limits = {};
  // Of connections, at each listener.
  PortLimits port_limits = {};
  // What listeners and channels show, and whom they let in. Null: nobody is asked, and every call
  // is Caller::Nobody's.
  std::shared_ptr<ProcessTls> tls = nullptr;
  // Typed services that every listener hosts on the same port, beside the data plane and gRPC's
  // health service. They outlive the listeners.
  std::vector<grpc::Service*> services = {};
};

// Addresses are host:port (IPv6 in brackets); port 0 takes a free one. Listen's errors are those of
// GrpcServer::Start. Error texts of handlers arrive cut at kMaxStatusTextBytes.
std::unique_ptr<DataTransport> MakeGrpcTransport(GrpcTransportOptions options = {});

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_TRANSPORT_H_
