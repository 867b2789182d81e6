// Makes certificates: a cluster's authority (CA), which signs those of its processes and people.
// Keys are ECDSA P-256: OpenSSL (Debian's gRPC) and BoringSSL (gRPC of other languages' packages)
// both take it in a TLS 1.3 handshake, while BoringSSL does not offer Ed25519 unless it is told to.
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_ISSUER_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_ISSUER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/uid.h"
#include "proto/runtime/credentials/certificate.h"
#include "proto/runtime/credentials/identity.h"

namespace strata {

// Both PEM. The key is a secret: it goes into private files and nowhere else.
struct KeyedCertificate {
  std::string certificate;
  std::string key;
};

// What IssueCertificate fills in from an identity; tests make other certificates of it.
struct CertificateContents {
  std::string unit;               // OU
  std::string common_name;        // CN; empty: none
  std::string alternative_names;  // as OpenSSL reads them: "URI:a,DNS:b"; empty: none
  bool authority = false;
  bool listens = false;  // may be the server's of a connection; every one may be the client's
  Validity valid;
};

// A new key and a certificate over it that `authority` signs, with a random serial number of 128
// bits. Null: it signs itself. INVALID_ARGUMENT: the authority's texts are malformed.
absl::StatusOr<KeyedCertificate> SignCertificate(const CertificateContents& contents,
                                                 const KeyedCertificate* authority);

// The authority of a cluster. Nothing that it signs may sign in its turn.
absl::StatusOr<KeyedCertificate> MakeAuthority(const ClusterId& cluster, const Validity& valid);

// INVALID_ARGUMENT: the identity's name is none (CheckIdentityName).
absl::StatusOr<KeyedCertificate> IssueCertificate(const KeyedCertificate& authority,
                                                  const Identity& identity, const Validity& valid);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_ISSUER_H_
