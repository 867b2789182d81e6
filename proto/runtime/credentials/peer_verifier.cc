#include "proto/runtime/credentials/peer_verifier.h"

#include <openssl/err.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/core/mutation.h"
#include "proto/runtime/credentials/certificate.h"
#include "proto/runtime/credentials/openssl_objects.h"

namespace strata {
namespace {

absl::Status Unproven(absl::string_view who, absl::string_view why) {
  return absl::UnauthenticatedError(absl::StrCat("certificate of ", who, ": ", why));
}

// "strata certs renew server alpha": of whom it says it is. Who says nothing of ours has no name
// to issue one for.
std::string Command(absl::string_view verb, const CertificateFacts& facts) {
  const auto identity = IdentityOf(facts);
  if (!identity.ok()) return "strata certs show, and issue one in its place";
  return absl::StrCat("strata certs ", verb, " ", RoleName(identity->role), " ", identity->name);
}

// Why OpenSSL does not take a certificate, and what to do.
std::string WhyRefused(int error, bool of_authority, const CertificateFacts& facts,
                       const ClusterId& cluster, absl::Time now) {
  const absl::string_view whose = of_authority ? "its CA's certificate" : "it";
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return absl::StrCat(
          whose, " has expired (it is ", TimeText(now), " here); ",
          of_authority
              ? absl::StrCat("make a new CA in another folder: strata certs init --cluster ",
                             cluster.text(), " --dir strata-certs-new")
              : absl::StrCat("renew it: ", Command("renew", facts)));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return absl::StrCat(
          whose, " is not valid yet (",
          of_authority ? "" : absl::StrCat("from ", TimeText(facts.valid.from), ", "), "it is ",
          TimeText(now), " here); compare the machines' clocks");
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return absl::StrCat("this cluster's CA has not signed it; issue one there: ",
                          Command("issue", facts));
    default:
      return absl::StrCat("it is refused (", X509_verify_cert_error_string(error),
                          "); issue one: ", Command("issue", facts));
  }
}

// UNAUTHENTICATED unless one of the authorities signed it and both are valid now.
absl::Status CheckSigned(X509& leaf, const CertificateFacts& facts,
                         const std::vector<X509Ptr>& authorities, const ClusterId& cluster,
                         absl::Time now) {
  const std::unique_ptr<X509_STORE, decltype(&X509_STORE_free)> trusted(X509_STORE_new(),
                                                                        &X509_STORE_free);
  const std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> check(X509_STORE_CTX_new(),
                                                                              &X509_STORE_CTX_free);
  bool ready = trusted != nullptr && check != nullptr;
  for (const X509Ptr& authority : authorities) {
    ready = ready && X509_STORE_add_cert(trusted.get(), authority.get()) == 1;
  }
  ready = ready && X509_STORE_CTX_init(check.get(), trusted.get(), &leaf, nullptr) == 1;
  if (!ready) return OpenSslError("check a certificate");
  X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(check.get()), absl::ToTimeT(now));
  const bool good = X509_verify_cert(check.get()) == 1;
  ERR_clear_error();
  if (good) return absl::OkStatus();
  return Unproven(Describe(facts),
                  WhyRefused(X509_STORE_CTX_get_error(check.get()),
                             X509_STORE_CTX_get_error_depth(check.get()) > 0, facts, cluster, now));
}

absl::Status CheckExpected(const Identity& identity, const CertificateFacts& facts,
                           const PeerExpectations& expected) {
  const auto denied = [&](absl::string_view wanted) {
    return absl::PermissionDeniedError(
        absl::StrCat("certificate of ", Describe(facts), ": it is for ", Describe(identity),
                     ", and only ", wanted, " may do this; use that one's certificate"));
  };
  if (std::count(expected.roles.begin(), expected.roles.end(), identity.role) == 0) {
    return denied(expected.roles.empty()
                      ? std::string("nobody")
                      : absl::StrCat("role ", absl::StrJoin(expected.roles, " or ",
                                                            [](std::string* out, Role r) {
                                                              out->append(RoleName(r));
                                                            })));
  }
  if (expected.name.has_value() && identity.name != *expected.name &&
      !STRATA_MUTATION("certs.other_name_is_taken")) {
    return denied(absl::StrCat("'", *expected.name, "'"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Caller> VerifyPeer(absl::string_view chain, const PeerExpectations& expected,
                                  absl::Time now, const Revocations& revocations) {
  if (chain.empty()) {
    return Unproven("the peer",
                    "it shows none; start it with --certs and one of those that are listed by: "
                    "strata certs show");
  }
  const auto authorities = ParseCertificates(expected.authorities);
  if (!authorities.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("certificate of the cluster's CA: ", authorities.status().message()));
  }
  const auto leaf = ParseCertificate(chain);
  if (!leaf.ok()) return Unproven("the peer", leaf.status().message());
  const auto facts = ReadCertificate(chain);
  if (!facts.ok()) return Unproven("the peer", facts.status().message());
  // First, so that nothing else is told to whom nobody vouches for.
  if (absl::Status s = CheckSigned(**leaf, *facts, *authorities, expected.cluster, now); !s.ok()) {
    return s;
  }
  const auto identity = IdentityOf(*facts);
  if (!identity.ok()) {
    return Unproven(Describe(*facts), absl::StrCat(identity.status().message(),
                                                   "; issue one: ", Command("issue", *facts)));
  }
  if (identity->cluster != expected.cluster && !STRATA_MUTATION("certs.other_cluster_is_taken")) {
    return Unproven(Describe(*facts),
                    absl::StrCat("it is of cluster ", identity->cluster.text(), ", and this is ",
                                 expected.cluster.text(), "; use one of this cluster"));
  }
  // Of the scheduler a process hears the list.
  if (!revocations.unknown().empty() && identity->role != Role::kScheduler &&
      !STRATA_MUTATION("revoked.damaged_is_empty")) {
    return absl::UnavailableError(
        absl::StrCat("which certificates are revoked is not known here: ", revocations.unknown()));
  }
  if (revocations.Contains(facts->serial) && !STRATA_MUTATION("certs.revoked_is_taken")) {
    return Unproven(Describe(*facts), absl::StrCat("it was revoked (serial number ", facts->serial,
                                                   "); renew it: ", Command("renew", *facts)));
  }
  if (absl::Status s = CheckExpected(*identity, *facts, expected); !s.ok()) return s;
  return Caller{.name = identity->name, .role = identity->role};
}

}  // namespace strata
