// Reads the metrics of a process once.
// Tested by tests/proto/runtime/metrics/metrics_tls_test.cc
// Tested by tests/tools/cli/inspect/top_test.cc
#ifndef STRATA_PROTO_RUNTIME_METRICS_METRICS_CLIENT_H_
#define STRATA_PROTO_RUNTIME_METRICS_METRICS_CLIENT_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/credentials/credential_source.h"

namespace strata {

// Longer answers are refused.
inline constexpr size_t kMaxMetricsBytes = size_t{4} << 20;

struct MetricsRequest {
  std::string address;  // host:port
  absl::Duration timeout = absl::Seconds(5);
  const Clock* clock = nullptr;  // required
  // By TLS, to a scheduler, server or worker of the cluster. Null: plain HTTP.
  std::shared_ptr<CredentialSource> credentials;
  std::optional<std::string> name;  // whose metrics they must be; none: any process's
};
// What GET /metrics answers there, in Prometheus' text format. UNAVAILABLE: nothing listens there,
// it closed too early, or it does not let this process in; UNAUTHENTICATED, PERMISSION_DENIED: who
// listens there is not taken (VerifyPeer); DEADLINE_EXCEEDED; INVALID_ARGUMENT: no host:port;
// RESOURCE_EXHAUSTED: more than kMaxMetricsBytes; INTERNAL: an answer other than 200. Texts begin
// with the address.
absl::StatusOr<std::string> FetchMetrics(const MetricsRequest& request);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_METRICS_METRICS_CLIENT_H_
