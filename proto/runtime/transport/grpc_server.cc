#include "proto/runtime/transport/grpc_server.h"

#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/core/mutation.h"
#include "proto/runtime/base/backoff.h"
#include "proto/runtime/base/id_source.h"
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

absl::Status Errno(int error, const std::string& address) {
  const std::string text = absl::StrCat("cannot listen on \"", address, "\": ", strerror(error));
  switch (error) {
    case EADDRINUSE:
      return absl::AlreadyExistsError(
          absl::StrCat(text, "; another process has this port, choose another one or port 0"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(absl::StrCat(text, "; ports below 1024 need privileges"));
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(text);
    default:
      return absl::InvalidArgumentError(absl::StrCat(text, "; is it an address of this machine?"));
  }
}

// Tries the address by hand before gRPC does, which on failure gives no reason but a page of log.
// A name may stand for several addresses: none of them may be taken, one of them must be ours.
absl::Status Probe(const std::string& address, const HostPort& at) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int rc = getaddrinfo(at.host.c_str(), std::to_string(at.port).c_str(), &hints, &found);
  if (rc != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot listen on \"", address, "\": ", gai_strerror(rc)));
  }
  bool usable = false;
  int error = 0;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    const int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    const int on = 1;
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (fd >= 0 && bind(fd, a->ai_addr, a->ai_addrlen) == 0) {
      usable = true;
    } else if (error != EADDRINUSE) {
      error = errno;
    }
    if (fd >= 0) close(fd);
  }
  freeaddrinfo(found);
  if (error == EADDRINUSE || !usable) return Errno(error, address);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StartedServer> StartGrpcServer(grpc::ServerBuilder& builder,
                                              const std::string& address, BindScope scope,
                                              std::shared_ptr<grpc::ServerCredentials> credentials,
                                              absl::Duration lease) {
  absl::Status usable = CheckBindAddress(address, scope);
  if (usable.ok()) usable = Probe(address, *ParseHostPort(address));
  if (!usable.ok()) return usable;
  for (const Argument& a : kBufferArguments) builder.AddChannelArgument(a.name, a.value);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  // Two servers must not share a port, half of the calls each.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  const Keepalive keepalive = Keepalive::For(lease);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(keepalive.quiet));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(keepalive.patience));
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // no limit
  // Clients may ask as often as they like; by default those that do are thrown out.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.SetMaxReceiveMessageSize(static_cast<int>(kMaxMessageBytes));
  builder.SetMaxSendMessageSize(static_cast<int>(kMaxMessageBytes));
  grpc::EnableDefaultHealthCheckService(true);
  int port = 0;
  builder.AddListeningPort(
      address, credentials == nullptr ? grpc::InsecureServerCredentials() : std::move(credentials),
      &port);
  StartedServer started;
  started.server = builder.BuildAndStart();
  if (started.server == nullptr || port == 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on \"", address, "\": it was free a moment ago; try again"));
  }
  started.address = absl::StrCat(address.substr(0, address.rfind(':') + 1), port);
  return started;
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
