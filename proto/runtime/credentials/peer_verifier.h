// Decides who is at the other end of a connection, from the certificate that it showed. The
// verifiers of clients and servers, and whoever looks again later, ask it. Pure: no threads, no
// clock, no files.
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_PEER_VERIFIER_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_PEER_VERIFIER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/runtime/credentials/caller.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/revocations.h"

namespace strata {

struct PeerExpectations {
  std::string authorities;  // PEM: certificates of the cluster's CA, the old and the new one while
                            // it is replaced
  ClusterId cluster;
  std::vector<Role> roles;          // those that may be there
  std::optional<std::string> name;  // the only one that may be there; none: any
};

// Who showed `chain` (PEM, the peer's own certificate first; what follows it is not looked at, as
// no CA of ours lets another sign). The text of a refusal names subject and expiry, and what to do.
// UNAUTHENTICATED: the peer has not proven who it is: no certificate, a malformed one, another CA,
// another cluster, expired, not valid yet, revoked.
// PERMISSION_DENIED: it has, and is not expected: another role or name.
// FAILED_PRECONDITION: `authorities` holds no certificate.
// UNAVAILABLE: `revocations` are not known (Revocations::Unknown), and it is no scheduler.
//
//   const auto caller = VerifyPeer(chain, {.authorities = ca, .cluster = id,
//                                          .roles = {Role::kServer}, .name = "alpha"},
//                                  timer.Now(), revocations);
absl::StatusOr<Caller> VerifyPeer(absl::string_view chain, const PeerExpectations& expected,
                                  absl::Time now, const Revocations& revocations);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_PEER_VERIFIER_H_
