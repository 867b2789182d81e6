// What OpenSSL is told so that it shows a process's certificate of now, and takes at the other end
// only whom the process expects. For connections that are not gRPC's.
// Tested by tests/proto/runtime/metrics/metrics_tls_test.cc
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_TLS_CONTEXT_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_TLS_CONTEXT_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/runtime/credentials/credential_source.h"
#include "proto/runtime/credentials/identity.h"

struct ssl_ctx_st;

namespace strata {

struct TlsRules {
  std::shared_ptr<CredentialSource> credentials;
  std::vector<Role> roles;          // those that may be at the other end
  std::optional<std::string> name;  // the only one that may; none: any
  // Told why the other end was not taken; called by the threads of connections, several at a time.
  std::function<void(const absl::Status& why)> refused;
};

// Connections of `context` that begin from now on: TLS 1.3 alone, a certificate is required of the
// other end and judged by CredentialSource::Verify at each of them (none resumes an earlier one),
// and the certificate that is shown is the source's of that moment. Names of hosts are not
// compared. `rules` outlives `context`.
absl::Status ApplyTlsRules(const TlsRules& rules, ssl_ctx_st& context);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_TLS_CONTEXT_H_
