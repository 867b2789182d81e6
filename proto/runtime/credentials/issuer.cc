#include "proto/runtime/credentials/issuer.h"

#include <openssl/asn1.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/credentials/openssl_objects.h"

namespace strata {
namespace {

constexpr size_t kSerialBytes = 16;
constexpr size_t kMaxCommonName = 64;  // X.509's ub-common-name
constexpr char kOrganization[] = "strata";

bool SetSerial(X509& certificate) {
  uint8_t bytes[kSerialBytes];
  do {
    if (RAND_bytes(bytes, sizeof bytes) != 1) return false;
  } while (std::all_of(bytes, bytes + sizeof bytes, [](uint8_t b) { return b == 0; }));
  const std::unique_ptr<BIGNUM, decltype(&BN_free)> number(BN_bin2bn(bytes, sizeof bytes, nullptr),
                                                           &BN_free);
  return number != nullptr &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(&certificate)) != nullptr;
}

bool AddName(X509_NAME* subject, const char* field, const std::string& text) {
  return X509_NAME_add_entry_by_txt(subject, field, MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(text.data()),
                                    static_cast<int>(text.size()), -1, 0) == 1;
}

bool SetSubject(X509& certificate, const CertificateContents& contents) {
  X509_NAME* const subject = X509_get_subject_name(&certificate);
  return AddName(subject, "O", kOrganization) && AddName(subject, "OU", contents.unit) &&
         (contents.common_name.empty() || AddName(subject, "CN", contents.common_name));
}

bool SetValidity(X509& certificate, const Validity& valid) {
  return ASN1_TIME_set(X509_getm_notBefore(&certificate), absl::ToTimeT(valid.from)) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(&certificate), absl::ToTimeT(valid.until)) != nullptr;
}

bool AddExtension(X509& certificate, X509& issuer, int what, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str()), &X509_EXTENSION_free);
  return extension != nullptr && X509_add_ext(&certificate, extension.get(), -1) == 1;
}

bool AddExtensions(X509& certificate, X509& issuer, const CertificateContents& contents) {
  const bool authority = contents.authority;
  const auto add = [&](int what, const std::string& value) {
    return AddExtension(certificate, issuer, what, value);
  };
  bool added =
      add(NID_basic_constraints, authority ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE") &&
      add(NID_key_usage,
          authority ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature") &&
      add(NID_subject_key_identifier, "hash");
  if (added && !authority) {
    added = add(NID_ext_key_usage, contents.listens ? "serverAuth,clientAuth" : "clientAuth");
  }
  if (added && &certificate != &issuer) added = add(NID_authority_key_identifier, "keyid:always");
  if (added && !contents.alternative_names.empty()) {
    added = add(NID_subject_alt_name, contents.alternative_names);
  }
  return added;
}

}  // namespace

absl::StatusOr<KeyedCertificate> SignCertificate(const CertificateContents& contents,
                                                 const KeyedCertificate* authority) {
  const KeyPtr key(EVP_EC_gen("P-256"));
  const X509Ptr certificate(X509_new());
  if (key == nullptr || certificate == nullptr) return OpenSslError("make a key");
  X509Ptr issuer;
  KeyPtr issuer_key;
  if (authority != nullptr) {
    auto parsed = ParseCertificate(authority->certificate);
    if (!parsed.ok()) return parsed.status();
    auto parsed_key = ParseKey(authority->key);
    if (!parsed_key.ok()) return parsed_key.status();
    issuer = *std::move(parsed);
    issuer_key = *std::move(parsed_key);
  }
  X509& signer = issuer != nullptr ? *issuer : *certificate;
  EVP_PKEY* const signing = issuer_key != nullptr ? issuer_key.get() : key.get();
  if (X509_set_version(certificate.get(), X509_VERSION_3) != 1 || !SetSerial(*certificate) ||
      !SetSubject(*certificate, contents) || !SetValidity(*certificate, contents.valid) ||
      X509_set_pubkey(certificate.get(), key.get()) != 1 ||
      X509_set_issuer_name(certificate.get(), X509_get_subject_name(&signer)) != 1 ||
      !AddExtensions(*certificate, signer, contents) ||
      X509_sign(certificate.get(), signing, EVP_sha256()) <= 0) {
    return OpenSslError("make a certificate");
  }
  auto certificate_pem = CertificatePem(*certificate);
  if (!certificate_pem.ok()) return certificate_pem.status();
  auto key_pem = KeyPem(*key);
  if (!key_pem.ok()) return key_pem.status();
  return KeyedCertificate{*std::move(certificate_pem), *std::move(key_pem)};
}

absl::StatusOr<KeyedCertificate> MakeAuthority(const ClusterId& cluster, const Validity& valid) {
  CertificateContents contents;
  contents.unit = "ca";
  contents.common_name = cluster.text();
  contents.alternative_names = absl::StrCat("URI:", AuthorityUri(cluster));
  contents.authority = true;
  contents.valid = valid;
  return SignCertificate(contents, nullptr);
}

absl::StatusOr<KeyedCertificate> IssueCertificate(const KeyedCertificate& authority,
                                                  const Identity& identity, const Validity& valid) {
  if (const absl::Status s = CheckIdentityName(identity.name); !s.ok()) return s;
  CertificateContents contents;
  contents.unit = RoleName(identity.role);
  // For people; what counts is the URI, which has room for all.
  if (identity.name.size() <= kMaxCommonName) contents.common_name = identity.name;
  contents.alternative_names = absl::StrCat("URI:", IdentityUri(identity));
  contents.listens = Listens(identity.role);
  if (contents.listens) {
    absl::StrAppend(&contents.alternative_names,
                    ",DNS:", RoleHost(identity.cluster, identity.role));
  }
  contents.valid = valid;
  return SignCertificate(contents, &authority);
}

}  // namespace strata
