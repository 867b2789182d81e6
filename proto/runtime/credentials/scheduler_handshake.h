// Why a scheduler does not take a connection, which gRPC does not tell: it says no more than that
// there is none.
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_SCHEDULER_HANDSHAKE_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_SCHEDULER_HANDSHAKE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "proto/runtime/credentials/credential_source.h"

namespace strata {

// Connects to `scheduler` (host:port) by itself, for some seconds at most, as one who shows `mine`
// (null: who goes without TLS). `process`: whose connection it is, as "server alpha"; empty: a
// user's command.
// OK: nothing is there, or what is there takes connections as it should. UNAUTHENTICATED,
// PERMISSION_DENIED: one end does not take the other's certificate, or one of the two speaks no
// TLS. The text names whose certificate it is and when it expires (of `mine` the file too), and
// says what to do. UNAVAILABLE: a connection is taken, and then nothing is said, or it is closed.
absl::Status WhyNoHandshake(const std::string& scheduler,
                            const std::shared_ptr<CredentialSource>& mine,
                            const std::string& process = "");

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_SCHEDULER_HANDSHAKE_H_
