// What OpenSSL hands out, owned; certificates and keys from and to PEM. No header of OpenSSL is
// included here, so that none is where this is.
// Tested by tests/proto/runtime/credentials/certificate_test.cc
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_OPENSSL_OBJECTS_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_OPENSSL_OBJECTS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct bio_st;
struct evp_pkey_st;
struct x509_st;

namespace strata {

struct FreeOpenSsl {
  void operator()(bio_st* object) const;
  void operator()(evp_pkey_st* object) const;
  void operator()(x509_st* object) const;
};
using BioPtr = std::unique_ptr<bio_st, FreeOpenSsl>;
using KeyPtr = std::unique_ptr<evp_pkey_st, FreeOpenSsl>;
using X509Ptr = std::unique_ptr<x509_st, FreeOpenSsl>;

// More than any certificate or key of ours, or a bundle of them, has; longer texts are refused.
inline constexpr size_t kMaxPemBytes = size_t{256} << 10;

// "ACTION: REASON" of the last call that failed, and forgets it: connections of this thread would
// take what is left of it for theirs.
absl::Status OpenSslError(absl::string_view action);

// All certificates of a text, in order. INVALID_ARGUMENT: it holds none, or a malformed one.
absl::StatusOr<std::vector<X509Ptr>> ParseCertificates(absl::string_view pem);
// The first one.
absl::StatusOr<X509Ptr> ParseCertificate(absl::string_view pem);
// INVALID_ARGUMENT: it holds no private key, or one with a passphrase. The error has nothing of it.
absl::StatusOr<KeyPtr> ParseKey(absl::string_view pem);

absl::StatusOr<std::string> CertificatePem(x509_st& certificate);
// A secret.
absl::StatusOr<std::string> KeyPem(evp_pkey_st& key);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_OPENSSL_OBJECTS_H_
