// Which ciphers of TLS 1.3 this process would rather have. gRPC has no option for it.
// Tested by tests/proto/runtime/transport/tls_credentials_test.cc
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_CIPHER_SUITES_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_CIPHER_SUITES_H_

#include "absl/status/status.h"

namespace strata {

// Has every TLS context that this process makes afterwards prefer AES-GCM with keys of 128 bits, as
// a client and as a server; peers that know only another cipher of TLS 1.3 still get theirs. What
// the machine's own configuration of OpenSSL says of all contexts gives way to it. INTERNAL:
// OpenSSL does not take it.
absl::Status PreferAes128();

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_CIPHER_SUITES_H_
