// An authority of a cluster, and certificates of it, in a folder that goes with it.
#ifndef STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_TEST_CERTS_H_
#define STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_TEST_CERTS_H_

#include <catch2/catch.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/credentials/peer_verifier.h"
#include "tests/temp_folder.h"

namespace strata::testing {

inline constexpr ClusterId kTlsCluster{1, 2}, kOtherTlsCluster{3, 4};
// A cluster's authority, and certificates of it.
class Certs {
 public:
  explicit Certs(const ClusterId& cluster = kTlsCluster, absl::Time made = absl::Now())
      : cluster_(cluster) {
    REQUIRE(InitAuthority(folder(), cluster, 300, made).ok());
  }
  // The folder that a process is given.
  std::string Issue(Role role, const std::string& name, absl::Time made = absl::Now(),
                    int days = 10) const {
    const auto issued = IssueIdentity(folder(), {.role = role, .name = name, .days = days}, made);
    REQUIRE(issued.ok());
    return std::filesystem::path(issued->file).parent_path().string();
  }
  PeerExpectations Expect(std::vector<Role> roles, std::optional<std::string> name = {}) const {
    return {.authorities = ReadAuthority(folder())->pem,
            .cluster = cluster_,
            .roles = std::move(roles),
            .name = std::move(name)};
  }
  std::string folder() const { return temp_.path() + "/certs"; }

 private:
  const TempFolder temp_;
  const ClusterId cluster_;
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_TEST_CERTS_H_
