#include "proto/runtime/credentials/openssl_objects.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace strata {
namespace {

absl::StatusOr<BioPtr> Reading(absl::string_view text) {
  if (text.size() > kMaxPemBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", text.size(), " bytes; at most ", kMaxPemBytes, " are read"));
  }
  BioPtr bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  if (bio == nullptr) return OpenSslError("read PEM");
  return bio;
}

// Instead of a question at the terminal.
int NoPassphrase(char*, int, int, void*) { return -1; }

std::string TextOf(bio_st& bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(&bio, &bytes);
  return std::string(bytes, static_cast<size_t>(size));
}

}  // namespace

void FreeOpenSsl::operator()(bio_st* object) const { BIO_free_all(object); }
void FreeOpenSsl::operator()(evp_pkey_st* object) const { EVP_PKEY_free(object); }
void FreeOpenSsl::operator()(x509_st* object) const { X509_free(object); }

absl::Status OpenSslError(absl::string_view action) {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return absl::InternalError(absl::StrCat("cannot ", action, ": ",
                                          reason == nullptr ? "OpenSSL does not say why" : reason));
}

absl::StatusOr<std::vector<X509Ptr>> ParseCertificates(absl::string_view pem) {
  absl::StatusOr<BioPtr> bio = Reading(pem);
  if (!bio.ok()) return bio.status();
  std::vector<X509Ptr> certificates;
  while (X509* const next = PEM_read_bio_X509(bio->get(), nullptr, NoPassphrase, nullptr)) {
    certificates.emplace_back(next);
  }
  const unsigned long code = ERR_peek_last_error();
  const bool ended =
      ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!ended) return absl::InvalidArgumentError("it holds a malformed certificate");
  if (certificates.empty()) return absl::InvalidArgumentError("it holds no certificate (PEM)");
  return certificates;
}

absl::StatusOr<X509Ptr> ParseCertificate(absl::string_view pem) {
  absl::StatusOr<BioPtr> bio = Reading(pem);
  if (!bio.ok()) return bio.status();
  X509Ptr certificate(PEM_read_bio_X509(bio->get(), nullptr, NoPassphrase, nullptr));
  ERR_clear_error();
  if (certificate == nullptr) return absl::InvalidArgumentError("it holds no certificate (PEM)");
  return certificate;
}

absl::StatusOr<KeyPtr> ParseKey(absl::string_view pem) {
  absl::StatusOr<BioPtr> bio = Reading(pem);
  if (!bio.ok()) return bio.status();
  KeyPtr key(PEM_read_bio_PrivateKey(bio->get(), nullptr, NoPassphrase, nullptr));
  ERR_clear_error();
  if (key == nullptr) {
    return absl::InvalidArgumentError("it holds no private key (PEM, without a passphrase)");
  }
  return key;
}

absl::StatusOr<std::string> CertificatePem(x509_st& certificate) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || PEM_write_bio_X509(bio.get(), &certificate) != 1) {
    return OpenSslError("write a certificate as PEM");
  }
  return TextOf(*bio);
}

absl::StatusOr<std::string> KeyPem(evp_pkey_st& key) {
  const BioPtr bio(BIO_new(BIO_s_secmem()));  // emptied before it is freed
  if (bio == nullptr ||
      PEM_write_bio_PrivateKey(bio.get(), &key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return OpenSslError("write a private key as PEM");
  }
  return TextOf(*bio);
}

}  // namespace strata
