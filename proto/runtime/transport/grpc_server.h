// Starting a gRPC server the way all our processes do: bind policy, limits, buffer sizes, health
// service, and an error that says what is wrong with the address.
// Tested by tests/proto/runtime/transport/grpc_transport_test.cc
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_SERVER_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_SERVER_H_

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/transport/bind_policy.h"
#include "proto/runtime/transport/keepalive.h"

namespace strata {

struct StartedServer {
  std::unique_ptr<grpc::Server> server;
  std::string address;  // with the real port where 0 was asked for
};

// Starts what `builder` holds (its services and completion queues) at `address`; null credentials:
// without TLS.
// Enables gRPC's health service, which answers SERVING until the server's GetHealthCheckService()
// is told otherwise. Clients that fall silent are given up by `lease` (keepalive.h). On failure
// completion queues of the builder are the caller's to shut down.
//   ALREADY_EXISTS: the port is taken. INVALID_ARGUMENT: no address of this machine.
//   PERMISSION_DENIED: bind policy, or a port that needs privileges.
absl::StatusOr<StartedServer> StartGrpcServer(grpc::ServerBuilder& builder,
                                              const std::string& address, BindScope scope,
                                              std::shared_ptr<grpc::ServerCredentials> credentials,
                                              absl::Duration lease = KnownLease::kDefault);

// Arguments of a channel to such a server: message limits, buffer sizes, quick reconnection, whose
// pauses are each channel's own (proto/runtime/base/backoff.h), and when a silent one is given up.
grpc::ChannelArguments GrpcChannelArguments(absl::Duration lease = KnownLease::kDefault);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_SERVER_H_
