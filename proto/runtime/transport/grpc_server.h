// Starting a gRPC server the way all our processes do: bind policy, limits, buffer sizes, health
// service, and an error that says what is wrong with the address.
// Tested by tests/proto/runtime/transport/grpc_transport_test.cc
// Tested by tests/proto/runtime/transport/port_limits_test.cc
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_SERVER_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_SERVER_H_

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/transport/bind_policy.h"
#include "proto/runtime/transport/health_service.h"
#include "proto/runtime/transport/keepalive.h"
#include "proto/runtime/transport/port_limits.h"
#include "proto/runtime/transport/port_listener.h"
#include "proto/runtime/transport/process_tls.h"

namespace strata {

struct GrpcServerOptions {
  std::string address;  // host:port; port 0 takes a free one
  BindScope scope = BindScope::kLoopbackOnly;
  // What the port shows, and whom it lets in. Null: no TLS, and nobody is asked.
  std::shared_ptr<ProcessTls> tls = nullptr;
  PortLimits limits = {};
  // By which clients that fall silent are given up (keepalive.h).
  absl::Duration lease = KnownLease::kDefault;
};

// A server at a port. One thread at a time, but for address() and port().
class GrpcServer {
 public:
  // Starts what `builder` holds (its services and completion queues), beside the health service. On
  // failure completion queues of the builder are the caller's to shut down.
  //   ALREADY_EXISTS: the port is taken. INVALID_ARGUMENT: no address of this machine.
  //   PERMISSION_DENIED: bind policy, or a port that needs privileges.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(grpc::ServerBuilder& builder,
                                                           const GrpcServerOptions& options);
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  // Health is NOT_SERVING from now on, and who watches it is told.
  void SayClosing() { health_->Close(); }
  // Takes no connection and no call any more; calls that last longer than `grace` are cancelled.
  // Once. Returns when all have ended.
  void Close(absl::Duration grace);

  // With the real port where 0 was asked for.
  const std::string& address() const { return port_->address(); }
  const PortListener& port() const { return *port_; }

 private:
  GrpcServer() = default;

  // Each outlives what stands below it.
  std::shared_ptr<grpc::ServerCredentials> credentials_;
  std::unique_ptr<HealthService> health_;
  std::unique_ptr<PortListener> port_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
};

// Arguments of a channel to such a server: message limits, buffer sizes, quick reconnection, whose
// pauses are each channel's own (proto/runtime/base/backoff.h), and when a silent one is given up.
grpc::ChannelArguments GrpcChannelArguments(absl::Duration lease = KnownLease::kDefault);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_SERVER_H_
