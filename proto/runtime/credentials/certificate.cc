#include "proto/runtime/credentials/certificate.h"

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/runtime/credentials/openssl_objects.h"

namespace strata {
namespace {

constexpr size_t kSerialDigits = 32;      // 128 bits
constexpr size_t kMaxSubjectBytes = 200;  // a peer may send any

absl::Status Malformed(absl::string_view what) {
  ERR_clear_error();
  return absl::InvalidArgumentError(absl::StrCat("its ", what, " cannot be read"));
}

absl::StatusOr<std::string> SubjectOf(X509& certificate) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  // Control characters and what is not ASCII are escaped.
  constexpr unsigned long kFlags = ASN1_STRFLGS_RFC2253 | XN_FLAG_SEP_COMMA_PLUS | XN_FLAG_FN_SN;
  if (bio == nullptr ||
      X509_NAME_print_ex(bio.get(), X509_get_subject_name(&certificate), 0, kFlags) < 0) {
    return Malformed("subject");
  }
  char* bytes = nullptr;
  const auto size = static_cast<size_t>(BIO_get_mem_data(bio.get(), &bytes));
  if (size <= kMaxSubjectBytes) return std::string(bytes, size);
  return absl::StrCat(absl::string_view(bytes, kMaxSubjectBytes), "...");
}

absl::StatusOr<std::string> SerialOf(X509& certificate) {
  const std::unique_ptr<BIGNUM, decltype(&BN_free)> number(
      ASN1_INTEGER_to_BN(X509_get0_serialNumber(&certificate), nullptr), &BN_free);
  char* const digits = number == nullptr ? nullptr : BN_bn2hex(number.get());
  if (digits == nullptr) return Malformed("serial number");
  const std::string serial = absl::AsciiStrToLower(digits);
  OPENSSL_free(digits);
  const size_t missing = serial.size() < kSerialDigits ? kSerialDigits - serial.size() : 0;
  return absl::StrCat(std::string(missing, '0'), serial);
}

absl::StatusOr<absl::Time> TimeOf(const ASN1_TIME* moment) {
  std::tm fields = {};
  if (moment == nullptr || ASN1_TIME_to_tm(moment, &fields) != 1) return Malformed("validity");
  return absl::FromTM(fields, absl::UTCTimeZone());
}

std::string TextOf(const ASN1_IA5STRING* name) {
  return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name)),
                     static_cast<size_t>(ASN1_STRING_length(name)));
}

absl::Status ReadNames(X509& certificate, CertificateFacts& facts) {
  constexpr int kNone = -1;
  int found = 0;
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> names(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(&certificate, NID_subject_alt_name, &found, nullptr)),
      &GENERAL_NAMES_free);
  if (names == nullptr) {
    return found == kNone ? absl::OkStatus() : Malformed("alternative names");
  }
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_URI) {
      facts.uris.push_back(TextOf(name->d.uniformResourceIdentifier));
    } else if (name->type == GEN_DNS) {
      facts.hosts.push_back(TextOf(name->d.dNSName));
    } else {
      ++facts.other_names;
    }
  }
  return absl::OkStatus();
}

// The only alternative name, but for names of hosts.
absl::StatusOr<absl::string_view> OnlyUri(const CertificateFacts& facts) {
  const bool first = STRATA_MUTATION("certs.first_name_counts") && !facts.uris.empty();
  if ((facts.other_names == 0 && facts.uris.size() == 1) || first) {
    return absl::string_view(facts.uris.front());
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "it has ", facts.uris.size() + facts.hosts.size() + facts.other_names, " alternative names, ",
      facts.uris.size(), " of them URIs; a certificate of Strata has one"));
}

// Of `hosts`, nothing but `own`, and that once at most.
absl::Status CheckHosts(const std::vector<std::string>& hosts, absl::string_view own) {
  const bool good = hosts.empty() || (hosts.size() == 1 && hosts.front() == own);
  if (good || STRATA_MUTATION("certs.any_host_is_its_own")) return absl::OkStatus();
  return absl::InvalidArgumentError("it has a name of a host that is not its own among its names");
}

}  // namespace

absl::StatusOr<CertificateFacts> ReadCertificate(absl::string_view pem) {
  const absl::StatusOr<X509Ptr> certificate = ParseCertificate(pem);
  if (!certificate.ok()) return certificate.status();
  X509& x509 = **certificate;
  CertificateFacts facts;
  const auto subject = SubjectOf(x509);
  if (!subject.ok()) return subject.status();
  const auto serial = SerialOf(x509);
  if (!serial.ok()) return serial.status();
  const auto from = TimeOf(X509_get0_notBefore(&x509));
  if (!from.ok()) return from.status();
  const auto until = TimeOf(X509_get0_notAfter(&x509));
  if (!until.ok()) return until.status();
  facts.subject = *subject;
  facts.serial = *serial;
  facts.valid = {*from, *until};
  facts.authority = (X509_get_extension_flags(&x509) & EXFLAG_CA) != 0;
  if (const absl::Status s = ReadNames(x509, facts); !s.ok()) return s;
  ERR_clear_error();
  return facts;
}

std::string Describe(const CertificateFacts& facts) {
  return absl::StrCat(facts.subject, ", expires ", TimeText(facts.valid.until));
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

absl::StatusOr<Identity> IdentityOf(const CertificateFacts& facts) {
  if (facts.authority) {
    return absl::InvalidArgumentError("it is a CA's certificate, which names no process");
  }
  const auto uri = OnlyUri(facts);
  if (!uri.ok()) return uri.status();
  auto identity = ParseIdentityUri(*uri);
  if (!identity.ok()) return identity.status();
  const std::string own =
      Listens(identity->role) ? RoleHost(identity->cluster, identity->role) : std::string();
  if (const absl::Status s = CheckHosts(facts.hosts, own); !s.ok()) return s;
  return identity;
}

absl::StatusOr<ClusterId> AuthorityClusterOf(const CertificateFacts& facts) {
  if (!facts.authority) return absl::InvalidArgumentError("it is not a CA's certificate");
  const auto uri = OnlyUri(facts);
  if (!uri.ok()) return uri.status();
  if (const absl::Status s = CheckHosts(facts.hosts, ""); !s.ok()) return s;
  return ParseAuthorityUri(*uri);
}

absl::Status CheckKeyBelongs(absl::string_view certificate_pem, absl::string_view key_pem) {
  const auto certificate = ParseCertificate(certificate_pem);
  if (!certificate.ok()) return certificate.status();
  const auto key = ParseKey(key_pem);
  if (!key.ok()) return key.status();
  const bool belongs = X509_check_private_key(certificate->get(), key->get()) == 1;
  ERR_clear_error();
  if (belongs) return absl::OkStatus();
  return absl::InvalidArgumentError("the key does not belong to the certificate");
}

absl::Status CheckSignedBy(absl::string_view certificate_pem, absl::string_view authorities_pem) {
  const auto certificate = ParseCertificate(certificate_pem);
  if (!certificate.ok()) return certificate.status();
  const auto authorities = ParseCertificates(authorities_pem);
  if (!authorities.ok()) return authorities.status();
  bool good = false;
  for (const X509Ptr& authority : *authorities) {
    good = good || (X509_check_issued(authority.get(), certificate->get()) == X509_V_OK &&
                    X509_verify(certificate->get(), X509_get0_pubkey(authority.get())) == 1);
  }
  ERR_clear_error();
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError("it is signed by another authority");
}

}  // namespace strata
