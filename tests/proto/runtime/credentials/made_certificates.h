// Certificates for tests: of one cluster, at one moment.
#ifndef STRATA_TESTS_PROTO_RUNTIME_CREDENTIALS_MADE_CERTIFICATES_H_
#define STRATA_TESTS_PROTO_RUNTIME_CREDENTIALS_MADE_CERTIFICATES_H_

#include <catch2/catch.hpp>
#include <initializer_list>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/runtime/credentials/certificate.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/issuer.h"

namespace strata::testing {

inline constexpr ClusterId kCluster{0x0123456789abcdef, 0x0011223344556677};
inline constexpr char kClusterText[] = "0123456789abcdef0011223344556677";
inline constexpr ClusterId kOtherCluster{7, 9};

// 2026-01-01T00:00:00Z.
inline absl::Time TestTime() { return absl::FromUnixSeconds(1767225600); }

inline Validity Around(absl::Time now) { return {now - absl::Hours(1), now + absl::Hours(240)}; }

inline KeyedCertificate MadeAuthority(const ClusterId& cluster = kCluster) {
  const auto made =
      MakeAuthority(cluster, {TestTime() - absl::Hours(48), TestTime() + absl::Hours(2400)});
  REQUIRE(made.ok());
  return *made;
}

inline KeyedCertificate Issued(const KeyedCertificate& authority, const Identity& identity,
                               const Validity& valid = Around(TestTime())) {
  const auto made = IssueCertificate(authority, identity, valid);
  REQUIRE(made.ok());
  return *made;
}

// A certificate with whatever names.
inline KeyedCertificate Named(const KeyedCertificate& authority, const std::string& names) {
  CertificateContents contents;
  contents.unit = "server";
  contents.common_name = "odd";
  contents.alternative_names = names;
  contents.listens = true;
  contents.valid = Around(TestTime());
  const auto made = SignCertificate(contents, &authority);
  REQUIRE(made.ok());
  return *made;
}

// One line that has all of these, and nothing of a key.
inline void CheckText(absl::string_view text, std::initializer_list<absl::string_view> parts) {
  INFO(std::string(text));
  for (const absl::string_view part : parts) {
    INFO(std::string(part));
    CHECK(absl::StrContains(text, part));
  }
  CHECK_FALSE(absl::StrContains(text, "\n"));
  CHECK_FALSE(absl::StrContains(text, "PRIVATE"));
}

}  // namespace strata::testing

#endif  // STRATA_TESTS_PROTO_RUNTIME_CREDENTIALS_MADE_CERTIFICATES_H_
