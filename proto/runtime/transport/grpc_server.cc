#include "proto/runtime/transport/grpc_server.h"

#include <grpcpp/security/server_credentials.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/core/mutation.h"
#include "proto/runtime/base/backoff.h"
#include "proto/runtime/base/id_source.h"
#include "proto/runtime/transport/grpc_deadline.h"
#include "proto/wire/message_limits.h"

namespace strata {
namespace {

// What big messages need, measured together: fewer frames, reads and writes of megabytes, and no
// probing for a bandwidth that a datacentre has.
struct Argument {
  const char* name;
  int value;
};
constexpr Argument kBufferArguments[] = {
    {"grpc.http2.max_frame_size", 8 << 20},
    {"grpc.http2.lookahead_bytes", 16 << 20},
    {"grpc.http2.write_buffer_size", 16 << 20},
    {"grpc.experimental.tcp_read_chunk_size", 1 << 20},
    {"grpc.experimental.tcp_max_read_chunk_size", 4 << 20},
    {"grpc.http2.bdp_probe", 0},
};

// Calls that one connection may have open; more wait at the client.
constexpr int kMaxStreamsPerConnection = 1024;

// A channel's pauses before it connects again: at most 50 ms and a second, when Spread adds half.
// gRPC makes each the 1.6-fold of the one before, and spreads it by a fifth.
constexpr absl::Duration kFirstReconnect = absl::Milliseconds(33);
constexpr absl::Duration kLastReconnect = absl::Milliseconds(666);

int Milliseconds(absl::Duration d) { return static_cast<int>(absl::ToInt64Milliseconds(d)); }

void SetArguments(const GrpcServerOptions& options, grpc::ServerBuilder& builder) {
  for (const Argument& a : kBufferArguments) builder.AddChannelArgument(a.name, a.value);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  const Keepalive keepalive = Keepalive::For(options.lease);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(keepalive.quiet));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(keepalive.patience));
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // no limit
  // Clients may ask as often as they like; by default those that do are thrown out.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  const PortLimits& limits = options.limits;
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             Milliseconds(limits.handshake_time));
  if (options.tls != nullptr) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, Milliseconds(limits.connection_age));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS,
                               Milliseconds(limits.connection_grace));
  }
  builder.SetMaxReceiveMessageSize(static_cast<int>(kMaxMessageBytes));
  builder.SetMaxSendMessageSize(static_cast<int>(kMaxMessageBytes));
}

}  // namespace

// 1. The port, so that what is wrong with the address is known first. 2. The server, to which
// connections are given that the port took. 3. The port takes connections.
absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(grpc::ServerBuilder& builder,
                                                              const GrpcServerOptions& options) {
  std::unique_ptr<GrpcServer> started(new GrpcServer);
  auto port = PortListener::Listen({.address = options.address,
                                    .scope = options.scope,
                                    .connections = options.limits.connections,
                                    .silence = Keepalive::For(options.lease).patience});
  if (!port.ok()) return port.status();
  started->port_ = *std::move(port);
  started->health_ = HealthService::Make(options.tls);
  builder.RegisterService(started->health_->service());
  SetArguments(options, builder);
  started->credentials_ =
      options.tls == nullptr ? grpc::InsecureServerCredentials() : options.tls->ForPort();
  started->connections_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      started->credentials_);
  started->server_ = builder.BuildAndStart();
  if (started->server_ == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("gRPC makes no server at \"", options.address, "\"; try again"));
  }
  started->port_->Accept([to = started->connections_.get()](int listener_fd, int fd) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.listener_fd = listener_fd;
    connection.fd = fd;
    to->HandleNewConnection(&connection);
  });
  return started;
}

GrpcServer::~GrpcServer() {
  // Whoever takes connections must not outlive the server. Null: the port was not to be had.
  if (port_ != nullptr) port_->Close();
}

void GrpcServer::Close(absl::Duration grace) {
  SayClosing();
  port_->Close();
  server_->Shutdown(GrpcDeadline(grace));
}

grpc::ChannelArguments GrpcChannelArguments(absl::Duration lease) {
  grpc::ChannelArguments arguments;
  for (const Argument& a : kBufferArguments) arguments.SetInt(a.name, a.value);
  arguments.SetMaxReceiveMessageSize(static_cast<int>(kMaxMessageBytes));
  arguments.SetMaxSendMessageSize(static_cast<int>(kMaxMessageBytes));
  // A connection of its own, with these arguments.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Callers repeat their calls themselves, and know better which may be repeated.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // A restarted server is found again within a second; the default waits up to two minutes.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
                   Milliseconds(Spread(kFirstReconnect, IdSource::System())));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS,
                   Milliseconds(Spread(kLastReconnect, IdSource::System())));
  const bool late = STRATA_MUTATION("keepalive.asks_late");
  const Keepalive keepalive = Keepalive::For(late ? 3 * lease : lease);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(keepalive.quiet));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(keepalive.patience));
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // no limit
  return arguments;
}

}  // namespace strata
