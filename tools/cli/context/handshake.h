// Why a scheduler does not take a connection, which gRPC does not tell: it says no more than that
// there is none.
// Tested by tests/tools/cli/cluster/up_process_test.cc
#ifndef STRATA_TOOLS_CLI_CONTEXT_HANDSHAKE_H_
#define STRATA_TOOLS_CLI_CONTEXT_HANDSHAKE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "proto/runtime/credentials/credential_source.h"

namespace strata {

// Connects to `scheduler` (host:port) by itself, for some seconds at most, as one who shows `mine`
// (null: who goes without TLS). OK: certificates are not the reason, or nothing is there.
// UNAUTHENTICATED, PERMISSION_DENIED: one end does not take the other's certificate, or one of the
// two speaks no TLS. The text names whose certificate it is and when it expires (of `mine` the file
// too), and says what to do.
absl::Status WhyNoHandshake(const std::string& scheduler,
                            const std::shared_ptr<CredentialSource>& mine);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_CONTEXT_HANDSHAKE_H_
