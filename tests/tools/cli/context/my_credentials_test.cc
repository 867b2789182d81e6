#include "tools/cli/context/my_credentials.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_clock.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/identity_files.h"
#include "tests/proto/runtime/credentials/made_certificates.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

using testing::CheckText;

// The certificates of a cluster with an operator, at the clock's time.
struct Cluster {
  TempFolder folder;
  ManualClock clock{testing::TestTime()};
  std::string certs = folder.path() + "/certs";
  std::string mine = certs + "/operator/ann/current";

  Cluster() {
    REQUIRE(InitAuthority(certs, testing::kCluster, 100, clock.Now()).ok());
    REQUIRE(IssueIdentity(certs, {Role::kOperator, "ann", 10}, clock.Now()).ok());
  }
  void CheckRefused(const std::string& from, std::initializer_list<absl::string_view> says) {
    const auto opened = OpenMyCredentials(from, clock);
    INFO(from);
    CHECK(absl::IsUnauthenticated(opened.status()));
    CheckText(opened.status().message(), says);
  }
};

TEST_CASE("a certificate that counts is opened", "[credentials]") {
  Cluster c;
  const auto opened = OpenMyCredentials(c.mine, c.clock);
  REQUIRE(opened.ok());
  CHECK((*opened)->self() == Identity{testing::kCluster, Role::kOperator, "ann"});
}

TEST_CASE("whatever is wrong is a failure of credentials that names the file", "[credentials]") {
  Cluster c;
  const std::string key = c.mine + "/tls.key";
  c.CheckRefused(c.folder.path() + "/none", {"/none/tls.crt"});
  c.CheckRefused(c.certs + "/operator/ann", {"did you mean ", c.mine});
  c.clock.Advance(absl::Hours(24 * 11));
  c.CheckRefused(c.mine, {"/tls.crt: ", "O=strata,OU=operator,CN=ann",
                          "expires 2026-01-11T00:00:00Z", "strata certs renew"});
  REQUIRE(RenewIdentity(c.certs, {Role::kOperator, "ann", 10}, c.clock.Now()).ok());
  CHECK(OpenMyCredentials(c.mine, c.clock).ok());
  REQUIRE(chmod(key.c_str(), 0644) == 0);
  c.CheckRefused(c.mine, {"/tls.key is open", "chmod 600"});
  REQUIRE(unlink(key.c_str()) == 0);
  c.CheckRefused(c.mine, {"/tls.key: No such file"});
}

}  // namespace
}  // namespace strata
