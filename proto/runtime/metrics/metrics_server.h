// The port that Prometheus reads a process's numbers from: GET /metrics, by HTTP or, where the
// process has credentials, by TLS 1.3 to members of its cluster alone.
#ifndef STRATA_PROTO_RUNTIME_METRICS_METRICS_SERVER_H_
#define STRATA_PROTO_RUNTIME_METRICS_METRICS_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/credentials/credential_source.h"

namespace strata {

// Answers to other paths are 404. A connection serves one request. Idle, its threads wait for the
// kernel.
class MetricsServer {
 public:
  // So many connections are served at a time; others wait in the kernel until one has ended.
  static constexpr size_t kConnections = 4;
  // Longer requests are refused, with 400 or by an end of the connection.
  static constexpr size_t kRequestBytes = size_t{16} << 10;

  struct Options {
    // host:port or [ipv6]:port; port 0: any. That it may be listened on the caller has seen
    // (transport/bind_policy.h).
    std::string address;
    // The text of a scrape, in Prometheus' text format 0.0.4. Called by the threads of connections,
    // several at a time.
    std::function<std::string()> text;
    // What is shown, and who is let in: every role of the cluster. Null: plain HTTP, for everybody.
    std::shared_ptr<CredentialSource> credentials;
    Timer* timer = nullptr;  // required; outlives the server
    // From its begin a connection has so long: a client that sends or reads slowly is ended.
    absl::Duration connection_time = absl::Seconds(10);
  };
  // ALREADY_EXISTS: the address cannot be listened on; the text says why. INVALID_ARGUMENT: it is
  // none. INTERNAL: OpenSSL cannot be set up.
  //
  //   auto server = MetricsServer::Start({.address = "127.0.0.1:0", .text = [...] { ... },
  //                                       .credentials = source, .timer = Timer::Real()});
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(Options options);

  // Ends connections that are open. When it returns, nothing calls `text` any more.
  virtual ~MetricsServer() = default;

  virtual uint16_t port() const = 0;
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_METRICS_METRICS_SERVER_H_
