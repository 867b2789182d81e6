#include "proto/runtime/credentials/certificate.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/credentials/openssl_objects.h"
#include "tests/proto/runtime/credentials/made_certificates.h"

namespace strata {
namespace {

using testing::CheckText;
using testing::Issued;
using testing::kCluster;
using testing::kClusterText;
using testing::MadeAuthority;
using testing::Named;
using testing::TestTime;

TEST_CASE("a certificate's facts are those that were put in", "[credentials]") {
  const KeyedCertificate authority = MadeAuthority();
  const Identity alpha{kCluster, Role::kServer, "alpha"};
  const auto facts = ReadCertificate(Issued(authority, alpha).certificate);
  REQUIRE(facts.ok());
  CHECK(facts->subject == "O=strata,OU=server,CN=alpha");
  CHECK(facts->valid.from == TestTime() - absl::Hours(1));
  CHECK(facts->valid.until == TestTime() + absl::Hours(240));
  CHECK_FALSE(facts->authority);
  CHECK(facts->uris == std::vector<std::string>{IdentityUri(alpha)});
  CHECK(facts->other_names == 0);
  CHECK(facts->serial.size() >= 32);
  CHECK(*IdentityOf(*facts) == alpha);
  CHECK(Describe(*facts) == "O=strata,OU=server,CN=alpha, expires 2026-01-11T00:00:00Z");
  CHECK(absl::IsInvalidArgument(AuthorityClusterOf(*facts).status()));

  const auto ca = ReadCertificate(authority.certificate);
  REQUIRE(ca.ok());
  CHECK(ca->authority);
  CHECK(ca->subject == absl::StrCat("O=strata,OU=ca,CN=", kClusterText));
  CHECK(*AuthorityClusterOf(*ca) == kCluster);
  CheckText(IdentityOf(*ca).status().message(), {"CA's certificate"});
}

TEST_CASE("alternative names that are not one URI of ours are refused", "[credentials]") {
  const KeyedCertificate authority = MadeAuthority();
  const std::string good = IdentityUri({kCluster, Role::kServer, "alpha"});
  struct Bad {
    std::string names;
    std::string says;
  };
  for (const Bad& bad :
       {Bad{"", "it has 0 alternative names"},
        Bad{absl::StrCat("URI:", good, ",URI:", good),
            "it has 2 alternative names, 2 of them URIs"},
        Bad{absl::StrCat("URI:", good, ",IP:127.0.0.1"), "it has 2 alternative names, 1 of them"},
        Bad{absl::StrCat("URI:", good, ",DNS:localhost"), "it has a name of a host that is not"},
        Bad{"DNS:localhost", "it has 1 alternative names, 0 of them"},
        Bad{"URI:https://example.com/a", "begins otherwise"}}) {
    const auto facts = ReadCertificate(Named(authority, bad.names).certificate);
    REQUIRE(facts.ok());
    const auto identity = IdentityOf(*facts);
    CHECK(absl::IsInvalidArgument(identity.status()));
    CheckText(identity.status().message(), {bad.says});
  }
}

TEST_CASE("what is no certificate is refused, and nothing of it is told", "[credentials]") {
  const KeyedCertificate authority = MadeAuthority();
  const std::string& pem = authority.certificate;
  std::string torn = pem;
  torn.erase(torn.size() / 2, 8);
  for (const std::string& bad :
       {std::string(), std::string("hello"), authority.key, pem.substr(0, pem.size() / 2), torn,
        std::string(kMaxPemBytes + 1, '-')}) {
    const auto facts = ReadCertificate(bad);
    REQUIRE_FALSE(facts.ok());
    CHECK(absl::IsInvalidArgument(facts.status()));
    CheckText(facts.status().message(), {});
  }
  // A bundle is read whole, or not at all.
  CHECK(ParseCertificates(absl::StrCat(pem, pem))->size() == 2);
  CHECK_FALSE(ParseCertificates(absl::StrCat(pem, torn)).ok());
  CHECK_FALSE(ParseCertificates("").ok());
}

TEST_CASE("a subject that others wrote fits a line", "[credentials]") {
  CertificateContents contents;
  contents.unit = "a\nb\x1b[31m,CN=root";
  contents.common_name = std::string(64, 'c');
  contents.valid = testing::Around(TestTime());
  const auto facts = ReadCertificate(SignCertificate(contents, nullptr)->certificate);
  REQUIRE(facts.ok());
  CheckText(facts->subject, {"O=strata,OU=a\\0Ab\\1B[31m\\,CN=root,CN=ccc"});
  contents.unit = std::string(64, 'u');
  const auto long_one = ReadCertificate(SignCertificate(contents, nullptr)->certificate);
  CHECK(long_one->subject.size() < 220);
}

TEST_CASE("a key belongs to its certificate alone", "[credentials]") {
  const KeyedCertificate a = MadeAuthority(), b = MadeAuthority();
  CHECK(CheckKeyBelongs(a.certificate, a.key).ok());
  const absl::Status other = CheckKeyBelongs(a.certificate, b.key);
  CHECK(absl::IsInvalidArgument(other));
  CheckText(other.message(), {"does not belong"});
  CheckText(CheckKeyBelongs(a.certificate, a.certificate).message(), {"no private key"});
  CheckText(CheckKeyBelongs(a.key, a.key).message(), {"no certificate"});
}

}  // namespace
}  // namespace strata
