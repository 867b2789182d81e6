// Who a process is in its cluster: the one alternative name of its certificate, a URI
// `spiffe://strata/CLUSTER/ROLE/NAME`. Pure values.
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_IDENTITY_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_IDENTITY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/core/uid.h"

namespace strata {

enum class Role : uint8_t { kScheduler, kServer, kWorker, kOperator, kReader };
inline constexpr std::array<Role, 5> kRoles = {Role::kScheduler, Role::kServer, Role::kWorker,
                                               Role::kOperator, Role::kReader};

// "scheduler", "server", "worker", "operator", "reader".
const char* RoleName(Role role);
// Nothing unless `text` is one of them.
std::optional<Role> ParseRole(absl::string_view text);
// All of them, with commas.
std::string RoleNames();

struct Identity {
  ClusterId cluster;
  Role role = Role::kReader;
  std::string name;

  friend bool operator==(const Identity&, const Identity&) = default;
};
// "reader/bob".
std::string Describe(const Identity& identity);

// As long as the scheduler lets a node's name be.
inline constexpr size_t kMaxIdentityNameBytes = 253;
// INVALID_ARGUMENT unless a certificate may carry the name: 1 to 253 letters, digits, '.', '_' and
// '-', the first a letter or a digit. So it is also the name of a folder, and needs no escapes in a
// URI.
absl::Status CheckIdentityName(absl::string_view name);

// REQUIRES: CheckIdentityName(identity.name) is OK.
std::string IdentityUri(const Identity& identity);
// INVALID_ARGUMENT: it is not what IdentityUri makes of any identity; the text says which part.
absl::StatusOr<Identity> ParseIdentityUri(absl::string_view uri);

// Whether processes of a role are connected to: servers of anything, the metrics' port included.
bool Listens(Role role);
// "server.CLUSTER.strata": what clients that know hosts' names alone (Prometheus, gRPC of other
// languages) may ask the certificate of such a process for. No such host is there. The role is in
// it, so that what is a worker's does not pass for the scheduler's.
std::string RoleHost(const ClusterId& cluster, Role role);

// The name of the authority of a cluster: `spiffe://strata/CLUSTER`.
std::string AuthorityUri(const ClusterId& cluster);
absl::StatusOr<ClusterId> ParseAuthorityUri(absl::string_view uri);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_IDENTITY_H_
