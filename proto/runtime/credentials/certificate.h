// What a certificate says, as far as Strata asks: whose it is, until when, by which number. Pure:
// texts in, values out.
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_CERTIFICATE_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_CERTIFICATE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/runtime/credentials/identity.h"

namespace strata {

// Both are valid times of a certificate.
struct Validity {
  absl::Time from;
  absl::Time until;
};

struct CertificateFacts {
  std::string subject;  // "O=strata,OU=server,CN=alpha"; for people, and cut where it is long
  std::string serial;   // hexadecimal, lower case, at least 32 digits
  Validity valid;
  bool authority = false;          // it may sign others
  std::vector<std::string> uris;   // of its alternative names
  std::vector<std::string> hosts;  // those that are names of DNS
  size_t other_names = 0;          // alternative names of other kinds
};

// The first certificate of a PEM text. INVALID_ARGUMENT: none, or a malformed one.
absl::StatusOr<CertificateFacts> ReadCertificate(absl::string_view pem);

// "O=strata,OU=server,CN=alpha, expires 2026-01-31T12:00:00Z".
std::string Describe(const CertificateFacts& facts);
// As certificates' times are shown: UTC, to the second.
std::string TimeText(absl::Time time);

// Whose certificate it is. INVALID_ARGUMENT: it is an authority's, or its alternative names are not
// one URI of ours and, at most, the RoleHost that belongs to it.
absl::StatusOr<Identity> IdentityOf(const CertificateFacts& facts);
// The same of an authority's.
absl::StatusOr<ClusterId> AuthorityClusterOf(const CertificateFacts& facts);

// INVALID_ARGUMENT unless the key is the one that the certificate speaks of. The text has nothing
// of the key.
absl::Status CheckKeyBelongs(absl::string_view certificate_pem, absl::string_view key_pem);
// INVALID_ARGUMENT unless one of the authorities signed it, whatever the time is.
absl::Status CheckSignedBy(absl::string_view certificate_pem, absl::string_view authorities_pem);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_CERTIFICATE_H_
