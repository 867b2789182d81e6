#include "tools/cli/context/handshake.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <ctime>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/credentials/certificate.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/tls_context.h"

namespace strata {
namespace {

constexpr int kSeconds = 3;
constexpr int kNapMs = 10;
// What gRPC speaks: its servers close to whoever does not ask for it.
constexpr unsigned char kHttp2[] = {2, 'h', '2'};

using BioPtr = std::unique_ptr<BIO, decltype(&BIO_free_all)>;
using ContextPtr = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

BioPtr Aimed(BIO* bio, const std::string& scheduler) {
  if (bio != nullptr) BIO_set_conn_hostname(bio, scheduler.c_str());
  return {bio, &BIO_free_all};
}

// The handshake of a TLS connection is part of it.
bool Connects(BIO& bio) { return BIO_do_connect_retry(&bio, kSeconds, kNapMs) == 1; }

// Whether bytes come, rather than an end.
bool Speaks(BIO& bio) {
  char byte;
  const time_t until = absl::ToTimeT(Clock::Real()->Now() + absl::Seconds(kSeconds));
  while (true) {
    if (BIO_read(&bio, &byte, 1) == 1) return true;
    if (!BIO_should_retry(&bio) || BIO_wait(&bio, until, kNapMs) != 1) return false;
  }
}

// OpenSSL's reason for the last failure; empty: none.
std::string Reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "" : reason;
}

std::string Mine(CredentialSource& mine) {
  const auto current = mine.Current();
  return absl::StrCat(current->certificate.file, ": ", Describe(current->certificate.facts));
}

absl::Status WithoutTls(const std::string& scheduler, BIO& tls) {
  if (!Connects(tls)) return absl::OkStatus();
  return absl::UnauthenticatedError(absl::StrCat(
      "the scheduler at ", scheduler,
      " asks who calls; show your certificate: --certs DIR, or a context that has one"));
}

absl::Status WithTls(const std::string& scheduler, CredentialSource& mine, BIO& tls,
                     const absl::Status& refused) {
  const bool connects = Connects(tls);
  const std::string why = Reason();
  if (!refused.ok()) {
    return absl::Status(refused.code(),
                        absl::StrCat("the scheduler at ", scheduler, ": ", refused.message(),
                                     " (compared with ca.crt of ", Mine(mine), ")"));
  }
  if (!connects) {
    return absl::UnauthenticatedError(
        absl::StrCat("the scheduler at ", scheduler, " speaks no TLS (", why,
                     "): it was started without --certs; start it with them, or give --insecure"));
  }
  if (Speaks(tls)) return absl::OkStatus();
  const std::string alert = Reason();
  if (alert.empty()) return absl::OkStatus();
  return absl::UnauthenticatedError(absl::StrCat(
      "the scheduler at ", scheduler, " refuses your certificate (", alert, "): ", Mine(mine),
      "; show one of its cluster's CA that has not expired: strata certs issue, strata certs "
      "renew"));
}

}  // namespace

absl::Status WhyNoHandshake(const std::string& scheduler,
                            const std::shared_ptr<CredentialSource>& mine) {
  const BioPtr plain = Aimed(BIO_new(BIO_s_connect()), scheduler);
  if (plain == nullptr || !Connects(*plain)) return absl::OkStatus();
  absl::Status refused;
  // Outlives the context.
  const TlsRules rules{.credentials = mine,
                       .roles = {Role::kScheduler},
                       .name = {},
                       .refused = [&refused](const absl::Status& why) { refused = why; }};
  const ContextPtr context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  if (context == nullptr || SSL_CTX_set_alpn_protos(context.get(), kHttp2, sizeof(kHttp2)) != 0 ||
      (mine != nullptr && !ApplyTlsRules(rules, *context).ok())) {
    return absl::OkStatus();
  }
  const BioPtr tls = Aimed(BIO_new_ssl_connect(context.get()), scheduler);
  if (tls == nullptr) return absl::OkStatus();
  ERR_clear_error();
  return mine == nullptr ? WithoutTls(scheduler, *tls) : WithTls(scheduler, *mine, *tls, refused);
}

}  // namespace strata
