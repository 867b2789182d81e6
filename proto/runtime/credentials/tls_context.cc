#include "proto/runtime/credentials/tls_context.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include <string>

#include "absl/status/statusor.h"
#include "proto/core/mutation.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/credentials/openssl_objects.h"
#include "proto/runtime/credentials/peer_verifier.h"

namespace strata {
namespace {

constexpr int kGood = 1, kBad = 0;

// Before a connection shows its certificate.
int ShowCurrent(SSL* connection, void* of) {
  const auto& rules = *static_cast<const TlsRules*>(of);
  const auto mine = rules.credentials->Current();
  const auto certificate = ParseCertificate(mine->keyed.certificate);
  const auto key = ParseKey(mine->keyed.key);
  if (!certificate.ok() || !key.ok()) return kBad;
  const bool shown = SSL_use_certificate(connection, certificate->get()) == 1 &&
                     SSL_use_PrivateKey(connection, key->get()) == 1;
  return shown ? kGood : kBad;
}

absl::Status CheckShown(X509_STORE_CTX* check, const TlsRules& rules) {
  X509* const shown = X509_STORE_CTX_get0_cert(check);
  if (shown == nullptr) return absl::UnauthenticatedError("the other end shows no certificate");
  const auto pem = CertificatePem(*shown);
  if (!pem.ok()) return pem.status();
  return rules.credentials->Verify(*pem, rules.roles, rules.name).status();
}

// In place of the library's own check of a certificate. That the other end has its key, the library
// sees for itself.
int VerifyShown(X509_STORE_CTX* check, void* of) {
  const auto& rules = *static_cast<const TlsRules*>(of);
  const absl::Status s = CheckShown(check, rules);
  if (s.ok() || STRATA_MUTATION("metrics.client_not_verified")) {
    X509_STORE_CTX_set_error(check, X509_V_OK);
    return kGood;
  }
  X509_STORE_CTX_set_error(check, X509_V_ERR_CERT_REJECTED);
  if (rules.refused) rules.refused(s);
  return kBad;
}

}  // namespace

absl::Status ApplyTlsRules(const TlsRules& rules, ssl_ctx_st& context) {
  // The callbacks only read it.
  void* const of = const_cast<TlsRules*>(&rules);
  if (SSL_CTX_set_min_proto_version(&context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_num_tickets(&context, 0) != 1) {
    return OpenSslError("ask for TLS 1.3");
  }
  SSL_CTX_set_options(&context, SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(&context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(&context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_cert_verify_callback(&context, VerifyShown, of);
  SSL_CTX_set_cert_cb(&context, ShowCurrent, of);
  return absl::OkStatus();
}

}  // namespace strata
