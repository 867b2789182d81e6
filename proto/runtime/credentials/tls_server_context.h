// What a TLS library's server is told so that it shows a process's certificate of now and lets in
// only whom the process expects. For ports that are not gRPC's.
// Tested by tests/proto/runtime/metrics/metrics_tls_test.cc
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_TLS_SERVER_CONTEXT_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_TLS_SERVER_CONTEXT_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "proto/runtime/credentials/credential_source.h"
#include "proto/runtime/credentials/identity.h"

struct ssl_ctx_st;

namespace strata {

struct TlsServerRules {
  std::shared_ptr<CredentialSource> credentials;
  std::vector<Role> roles;  // those that may connect
  // Told why a client was not let in; called by the threads of connections, several at a time.
  std::function<void(const absl::Status& why)> refused;
};

// Connections of `context` that begin from now on: TLS 1.3 alone, a client's certificate is
// required and judged by CredentialSource::Verify at each of them (none resumes an earlier one),
// and the certificate that is shown is the source's of that moment. `rules` outlives `context`.
absl::Status ApplyTlsServerRules(const TlsServerRules& rules, ssl_ctx_st& context);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_TLS_SERVER_CONTEXT_H_
