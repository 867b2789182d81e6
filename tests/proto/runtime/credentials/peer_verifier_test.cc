#include "proto/runtime/credentials/peer_verifier.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/credentials/certificate.h"
#include "tests/proto/runtime/credentials/made_certificates.h"

namespace strata {
namespace {

using testing::Around;
using testing::CheckText;
using testing::Issued;
using testing::kCluster;
using testing::kClusterText;
using testing::kOtherCluster;
using testing::MadeAuthority;
using testing::Named;
using testing::TestTime;

const KeyedCertificate& Authority() {
  static const KeyedCertificate authority = MadeAuthority();
  return authority;
}

PeerExpectations Expected() {
  return {.authorities = Authority().certificate,
          .cluster = kCluster,
          .roles = {Role::kServer, Role::kScheduler},
          .name = std::nullopt};
}

std::string Alpha(const Validity& valid = Around(TestTime())) {
  return Issued(Authority(), {kCluster, Role::kServer, "alpha"}, valid).certificate;
}

void CheckRefused(const std::string& chain, const PeerExpectations& expected, absl::Time now,
                  absl::StatusCode code, std::initializer_list<absl::string_view> says,
                  const Revocations& revocations = {}) {
  const auto caller = VerifyPeer(chain, expected, now, revocations);
  REQUIRE_FALSE(caller.ok());
  INFO(caller.status().ToString());
  CHECK(caller.status().code() == code);
  CheckText(caller.status().message(), says);
}

constexpr auto kUnproven = absl::StatusCode::kUnauthenticated;
constexpr auto kDenied = absl::StatusCode::kPermissionDenied;

TEST_CASE("a peer is who its certificate says, where it is expected", "[credentials]") {
  const std::string alpha = Alpha();
  const Caller expected{"alpha", Role::kServer};
  CHECK(*VerifyPeer(alpha, Expected(), TestTime(), {}) == expected);
  PeerExpectations named = Expected();
  named.name = "alpha";
  CHECK(*VerifyPeer(alpha, named, TestTime(), {}) == expected);
  // What a peer sends behind its own certificate does not count.
  CHECK(*VerifyPeer(absl::StrCat(alpha, Authority().certificate), Expected(), TestTime(), {}) ==
        expected);
  CHECK(*VerifyPeer(absl::StrCat(alpha, "rubbish"), Expected(), TestTime(), {}) == expected);
  // While an authority is replaced, both are there.
  PeerExpectations two = Expected();
  two.authorities = absl::StrCat(MadeAuthority().certificate, Authority().certificate);
  CHECK(*VerifyPeer(alpha, two, TestTime(), {}) == expected);
}

TEST_CASE("a peer without a certificate, or with a malformed one, is nobody", "[credentials]") {
  CheckRefused("", Expected(), TestTime(), kUnproven, {"shows none", "strata certs show"});
  CheckRefused("hello", Expected(), TestTime(), kUnproven, {"no certificate (PEM)"});
  CheckRefused(Authority().key, Expected(), TestTime(), kUnproven, {"no certificate (PEM)"});
}

TEST_CASE("another authority proves nothing", "[credentials]") {
  const KeyedCertificate other = MadeAuthority();
  const Identity alpha{kCluster, Role::kServer, "alpha"};
  CheckRefused(Issued(other, alpha).certificate, Expected(), TestTime(), kUnproven,
               {"O=strata,OU=server,CN=alpha", "expires 2026-01-11T00:00:00Z",
                "this cluster's CA has not signed it", "strata certs issue"});
  // Nor one who signed itself, or whom a process signed.
  CertificateContents contents;
  contents.unit = "server";
  contents.alternative_names = absl::StrCat("URI:", IdentityUri(alpha));
  contents.valid = Around(TestTime());
  CheckRefused(SignCertificate(contents, nullptr)->certificate, Expected(), TestTime(), kUnproven,
               {"has not signed it"});
  const KeyedCertificate server = Issued(Authority(), alpha);
  CheckRefused(SignCertificate(contents, &server)->certificate, Expected(), TestTime(), kUnproven,
               {"has not signed it"});
  // With the signer's certificate behind it, as an intermediate one.
  CheckRefused(absl::StrCat(SignCertificate(contents, &server)->certificate, server.certificate),
               Expected(), TestTime(), kUnproven, {"has not signed it"});
  // An authority is no process, whoever shows its certificate.
  CheckRefused(Authority().certificate, Expected(), TestTime(), kUnproven,
               {"CA's certificate, which names no process"});
}

TEST_CASE("a certificate counts within its time alone", "[credentials]") {
  const Validity valid = Around(TestTime());
  const std::string alpha = Alpha(valid);
  CHECK(VerifyPeer(alpha, Expected(), valid.from, {}).ok());
  CHECK(VerifyPeer(alpha, Expected(), valid.until - absl::Seconds(1), {}).ok());
  CheckRefused(alpha, Expected(), valid.until + absl::Seconds(1), kUnproven,
               {"CN=alpha", "expires 2026-01-11T00:00:00Z", "it has expired",
                "it is 2026-01-11T00:00:01Z here", "strata certs renew"});
  CheckRefused(alpha, Expected(), valid.from - absl::Seconds(1), kUnproven,
               {"CN=alpha", "is not valid yet", "from 2025-12-31T23:00:00Z",
                "it is 2025-12-31T22:59:59Z here", "clocks"});
  // Nor beyond its authority's.
  const std::string lasting = Alpha({TestTime() - absl::Hours(1), TestTime() + absl::Hours(9999)});
  CheckRefused(lasting, Expected(), TestTime() + absl::Hours(2401), kUnproven,
               {"its CA's certificate has expired", "strata certs init"});
  const std::string early = Alpha({TestTime() - absl::Hours(99), TestTime() + absl::Hours(1)});
  CheckRefused(early, Expected(), TestTime() - absl::Hours(49), kUnproven,
               {"its CA's certificate is not valid yet"});
}

TEST_CASE("roles and names that are not expected are denied", "[credentials]") {
  const std::string reader = Issued(Authority(), {kCluster, Role::kReader, "r"}).certificate;
  CheckRefused(reader, Expected(), TestTime(), kDenied,
               {"O=strata,OU=reader,CN=r", "expires 2026-01-11", "it is for reader/r",
                "only role server or scheduler may do this"});
  PeerExpectations nobody = Expected();
  nobody.roles.clear();
  CheckRefused(Alpha(), nobody, TestTime(), kDenied, {"only nobody may do this"});
  PeerExpectations beta = Expected();
  beta.name = "beta";
  CheckRefused(Alpha(), beta, TestTime(), kDenied,
               {"it is for server/alpha", "only 'beta' may do this"});
  beta.name = "";
  CheckRefused(Alpha(), beta, TestTime(), kDenied, {"only '' may do this"});
}

TEST_CASE("another cluster's certificate proves nothing here", "[credentials]") {
  // By the same authority, which should not have signed it.
  const std::string strange =
      Issued(Authority(), {kOtherCluster, Role::kServer, "alpha"}).certificate;
  CheckRefused(strange, Expected(), TestTime(), kUnproven,
               {"it is of cluster 00000000000000070000000000000009", kClusterText});
}

TEST_CASE("a certificate of two names, or of none of ours, proves nothing", "[credentials]") {
  const std::string a = IdentityUri({kCluster, Role::kServer, "alpha"});
  const std::string b = IdentityUri({kCluster, Role::kServer, "beta"});
  const std::string own = RoleHost(kCluster, Role::kServer);
  for (const std::string& names :
       {absl::StrCat("URI:", a, ",URI:", b), absl::StrCat("URI:", a, ",DNS:localhost"),
        absl::StrCat("URI:", a, ",DNS:", RoleHost(kCluster, Role::kScheduler)),
        absl::StrCat("URI:", a, ",DNS:", RoleHost(kOtherCluster, Role::kServer)),
        absl::StrCat("URI:", a, ",DNS:", own, ",DNS:", own),
        absl::StrCat("URI:", IdentityUri({kCluster, Role::kReader, "bob"}),
                     ",DNS:", RoleHost(kCluster, Role::kReader)),
        absl::StrCat("URI:", a, ",DNS:", own, ",IP:127.0.0.1"), std::string("DNS:localhost"),
        std::string(), std::string("URI:https://example.com")}) {
    INFO(names);
    CheckRefused(Named(Authority(), names).certificate, Expected(), TestTime(), kUnproven,
                 {"O=strata,OU=server,CN=odd", "strata certs show"});
  }
}

TEST_CASE("a certificate without the name of a host is as good", "[credentials]") {
  const std::string alpha = IdentityUri({kCluster, Role::kServer, "alpha"});
  for (const std::string& host :
       {std::string(), absl::StrCat(",DNS:", RoleHost(kCluster, Role::kServer))}) {
    INFO(host);
    const auto caller =
        VerifyPeer(Named(Authority(), absl::StrCat("URI:", alpha, host)).certificate, Expected(),
                   TestTime(), {});
    CHECK(caller.ok());
  }
}

TEST_CASE("a revoked certificate proves nothing, its successor does", "[credentials]") {
  const std::string old = Alpha(), renewed = Alpha();
  Revocations revocations;
  const std::string serial = ReadCertificate(old)->serial;
  revocations.Add(serial, {"server/alpha", TestTime()});
  CheckRefused(old, Expected(), TestTime(), kUnproven,
               {"CN=alpha", "expires", "it was revoked", serial, "strata certs renew"},
               revocations);
  CHECK(VerifyPeer(renewed, Expected(), TestTime(), revocations).ok());
}

TEST_CASE("without an authority nobody is anybody", "[credentials]") {
  PeerExpectations none = Expected();
  none.authorities = "";
  CheckRefused(Alpha(), none, TestTime(), absl::StatusCode::kFailedPrecondition,
               {"certificate of the cluster's CA"});
}

}  // namespace
}  // namespace strata
