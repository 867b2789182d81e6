#include "proto/runtime/credentials/issuer.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <catch2/catch.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/runtime/credentials/certificate.h"
#include "proto/runtime/credentials/identity.h"
#include "tests/proto/runtime/credentials/made_certificates.h"

namespace strata {
namespace {

using testing::CheckText;
using testing::Issued;
using testing::kCluster;
using testing::MadeAuthority;
using testing::TestTime;

using Parsed = std::unique_ptr<X509, decltype(&X509_free)>;

Parsed Parse(const std::string& pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free_all);
  Parsed parsed(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), &X509_free);
  REQUIRE(parsed != nullptr);
  return parsed;
}

TEST_CASE("an authority may sign certificates and nothing else", "[credentials]") {
  const Parsed ca = Parse(MadeAuthority().certificate);
  CHECK(X509_get_version(ca.get()) == X509_VERSION_3);
  CHECK((X509_get_extension_flags(ca.get()) & (EXFLAG_CA | EXFLAG_CRITICAL | EXFLAG_INVALID)) ==
        EXFLAG_CA);
  CHECK(X509_get_key_usage(ca.get()) == (KU_KEY_CERT_SIGN | KU_CRL_SIGN));
  CHECK(X509_get_pathlen(ca.get()) == 0);
  CHECK(EVP_PKEY_get_bits(X509_get0_pubkey(ca.get())) == 256);
  CHECK(X509_self_signed(ca.get(), 1) == 1);
}

TEST_CASE("who listens may be a connection's server, and people only its client", "[credentials]") {
  const KeyedCertificate authority = MadeAuthority();
  const Parsed ca = Parse(authority.certificate);
  for (const Role role : kRoles) {
    const Parsed leaf = Parse(Issued(authority, {kCluster, role, "alpha"}).certificate);
    INFO(RoleName(role));
    CHECK((X509_get_extension_flags(leaf.get()) & (EXFLAG_CA | EXFLAG_INVALID)) == 0);
    CHECK(X509_get_key_usage(leaf.get()) == KU_DIGITAL_SIGNATURE);
    const bool person = role == Role::kOperator || role == Role::kReader;
    const uint32_t expected = person ? XKU_SSL_CLIENT : XKU_SSL_CLIENT | XKU_SSL_SERVER;
    CHECK(X509_get_extended_key_usage(leaf.get()) == expected);
    CHECK(X509_verify(leaf.get(), X509_get0_pubkey(ca.get())) == 1);
    CHECK(X509_check_issued(ca.get(), leaf.get()) == X509_V_OK);
  }
}

TEST_CASE("who listens has the name of a host that says the role, and people have none",
          "[credentials]") {
  const KeyedCertificate authority = MadeAuthority();
  for (const Role role : kRoles) {
    const auto facts = ReadCertificate(Issued(authority, {kCluster, role, "a"}).certificate);
    REQUIRE(facts.ok());
    std::vector<std::string> hosts;
    if (Listens(role)) {
      hosts.push_back(std::string(RoleName(role)) + ".0123456789abcdef0011223344556677.strata");
    }
    CHECK(facts->hosts == hosts);
    CHECK(facts->other_names == 0);
    CHECK(IdentityOf(*facts).ok());
  }
}

TEST_CASE("serial numbers and keys are new each time", "[credentials]") {
  const KeyedCertificate authority = MadeAuthority();
  std::set<std::string> serials, keys;
  constexpr int kTimes = 20;
  for (int i = 0; i < kTimes; ++i) {
    const KeyedCertificate made = Issued(authority, {kCluster, Role::kServer, "alpha"});
    serials.insert(ReadCertificate(made.certificate)->serial);
    keys.insert(made.key);
    CHECK(CheckKeyBelongs(made.certificate, made.key).ok());
  }
  CHECK(serials.size() == kTimes);
  CHECK((keys.size() == kTimes));  // which a failure must not print
  // 128 bits: of twenty, one begins with other digits than zeros.
  CHECK(serials.rbegin()->substr(0, 2) != "00");
}

TEST_CASE("a long name stands in the alternative name alone", "[credentials]") {
  const KeyedCertificate authority = MadeAuthority();
  for (const size_t bytes : {size_t{64}, size_t{65}, kMaxIdentityNameBytes}) {
    const Identity identity{kCluster, Role::kWorker, std::string(bytes, 'n')};
    const auto facts = ReadCertificate(Issued(authority, identity).certificate);
    REQUIRE(facts.ok());
    CHECK(*IdentityOf(*facts) == identity);
    CHECK(facts->subject == (bytes == 64 ? "O=strata,OU=worker,CN=" + identity.name
                                         : std::string("O=strata,OU=worker")));
  }
}

TEST_CASE("what cannot be issued is refused", "[credentials]") {
  const KeyedCertificate authority = MadeAuthority();
  const Validity valid = testing::Around(TestTime());
  const auto name = IssueCertificate(authority, {kCluster, Role::kServer, "a,URI:b"}, valid);
  CHECK(absl::IsInvalidArgument(name.status()));
  for (const KeyedCertificate& broken :
       {KeyedCertificate{"", authority.key}, KeyedCertificate{authority.certificate, ""}}) {
    const auto made = IssueCertificate(broken, {kCluster, Role::kServer, "a"}, valid);
    CHECK(absl::IsInvalidArgument(made.status()));
    CheckText(made.status().message(), {});
  }
}

}  // namespace
}  // namespace strata
