#include "proto/runtime/credentials/identity.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tests/proto/runtime/credentials/made_certificates.h"

namespace strata {
namespace {

using testing::CheckText;
using testing::kCluster;
using testing::kClusterText;

TEST_CASE("an identity is its URI and back", "[credentials]") {
  std::set<std::string> uris;
  for (const Role role : kRoles) {
    for (const std::string& name :
         {std::string("alpha"), std::string("a"), std::string("0.example-1_x"),
          std::string(kMaxIdentityNameBytes, 'n')}) {
      const Identity identity{kCluster, role, name};
      CHECK(CheckIdentityName(name).ok());
      const auto back = ParseIdentityUri(IdentityUri(identity));
      REQUIRE(back.ok());
      CHECK(*back == identity);
      CHECK(uris.insert(IdentityUri(identity)).second);
      CHECK(ParseRole(RoleName(role)) == role);
    }
  }
  CHECK(uris.count(absl::StrCat("spiffe://strata/", kClusterText, "/server/alpha")) == 1);
  CHECK(RoleNames() == "scheduler, server, worker, operator, reader");
  CHECK(Describe(Identity{kCluster, Role::kWorker, "w"}) == "worker/w");
  CHECK_FALSE(ParseRole("Server").has_value());
  CHECK_FALSE(ParseRole("").has_value());
}

TEST_CASE("names that no certificate may carry are refused with the byte", "[credentials]") {
  const std::string zero("a\0b", 3);
  struct Bad {
    std::string name;
    std::string says;
  };
  for (const Bad& bad :
       {Bad{"", "is empty"}, Bad{"a/b", "has '/' at byte 2"}, Bad{zero, "has '\\x00' at byte 2"},
        Bad{std::string(300, 'n'), "has 300 bytes; at most 253"}, Bad{"..", "has '.' at byte 1"},
        Bad{"-a", "has '-' at byte 1"}, Bad{"a b", "has ' ' at byte 2"},
        Bad{"a,URI:x", "has ',' at byte 2"}, Bad{"a%2Fb", "has '%' at byte 2"},
        Bad{"n\xc3\xa4", "has '\\xc3' at byte 2"}, Bad{"a\n", "has '\\n' at byte 2"}}) {
    const absl::Status s = CheckIdentityName(bad.name);
    CHECK(absl::IsInvalidArgument(s));
    CheckText(s.message(), {bad.says});
    CHECK(s.message().size() < 300);
  }
}

TEST_CASE("what is no URI of an identity is refused with the part", "[credentials]") {
  const std::string good = absl::StrCat("spiffe://strata/", kClusterText);
  struct Bad {
    std::string uri;
    std::string says;
  };
  for (const Bad& bad :
       {Bad{"", "begins otherwise"}, Bad{"spiffe://other/x/server/a", "begins otherwise"},
        Bad{absl::StrCat("SPIFFE://strata/", kClusterText, "/server/a"), "begins otherwise"},
        Bad{good, "1 parts, not 3"}, Bad{good + "/server", "2 parts, not 3"},
        Bad{good + "/server/a/b", "4 parts, not 3"}, Bad{good + "/server/a/", "4 parts, not 3"},
        Bad{good + "/server/", "is empty"}, Bad{good + "/boss/a", "'boss' is no role"},
        Bad{good + "/server/a?x", "has '?' at byte 2"},
        Bad{good + std::string("/server/a\0b", 11), "at byte 2"},
        Bad{"spiffe://strata/0/server/a", "'0' is no cluster id"},
        Bad{"spiffe://strata/00000000000000000000000000000000/server/a", "no cluster id"},
        Bad{"spiffe://strata/0123456789ABCDEF0011223344556677/server/a", "no cluster id"}}) {
    const auto parsed = ParseIdentityUri(bad.uri);
    INFO(bad.uri);
    REQUIRE_FALSE(parsed.ok());
    CHECK(absl::IsInvalidArgument(parsed.status()));
    CheckText(parsed.status().message(), {bad.says});
  }
}

TEST_CASE("an authority's name is its cluster's", "[credentials]") {
  CHECK(AuthorityUri(kCluster) == absl::StrCat("spiffe://strata/", kClusterText));
  CHECK(*ParseAuthorityUri(AuthorityUri(kCluster)) == kCluster);
  for (const std::string& bad :
       {std::string(), std::string("spiffe://strata/"), AuthorityUri(kCluster) + "/",
        AuthorityUri(kCluster) + "/server/a", absl::StrCat("https://strata/", kClusterText)}) {
    CHECK(absl::IsInvalidArgument(ParseAuthorityUri(bad).status()));
  }
}

}  // namespace
}  // namespace strata
