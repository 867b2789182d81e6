#include "proto/runtime/credentials/credential_source.h"

#include <utility>

namespace strata {

absl::StatusOr<Caller> CredentialSource::Verify(absl::string_view chain, std::vector<Role> roles,
                                                std::optional<std::string> name) {
  return VerifyPeer(chain,
                    {.authorities = Current()->authorities,
                     .cluster = cluster(),
                     .roles = std::move(roles),
                     .name = std::move(name)},
                    WallNow(), *Revoked());
}

}  // namespace strata
