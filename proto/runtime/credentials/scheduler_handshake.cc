#include "proto/runtime/credentials/scheduler_handshake.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>

#include <ctime>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/credentials/certificate.h"
#include "proto/runtime/credentials/certs_command.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/tls_context.h"

namespace strata {
namespace {

constexpr int kSeconds = 3;
constexpr int kNapMs = 10;
// Until a connection is taken. Who asks has waited for one in vain before.
constexpr int kTakenMs = 1000;
// What gRPC speaks: its servers close to whoever does not ask for it.
constexpr unsigned char kHttp2[] = {2, 'h', '2'};

using BioPtr = std::unique_ptr<BIO, decltype(&BIO_free_all)>;
using ContextPtr = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

BioPtr Aimed(BIO* bio, const std::string& scheduler) {
  if (bio != nullptr) BIO_set_conn_hostname(bio, scheduler.c_str());
  return {bio, &BIO_free_all};
}

time_t GiveUp() { return absl::ToTimeT(Clock::Real()->Now() + absl::Seconds(kSeconds)); }

// Says no at once where nobody listens. The connection is closed again: who takes one at a time is
// to take the next one.
bool IsListened(const std::string& scheduler) {
  const BioPtr plain = Aimed(BIO_new(BIO_s_connect()), scheduler);
  if (plain == nullptr) return false;
  BIO_set_nbio(plain.get(), 1);
  if (BIO_do_connect(plain.get()) == 1) return true;
  pollfd taken{.fd = -1, .events = POLLOUT, .revents = 0};
  if (!BIO_should_retry(plain.get()) || BIO_get_fd(plain.get(), &taken.fd) < 0) return false;
  return poll(&taken, 1, kTakenMs) == 1 && BIO_do_connect(plain.get()) == 1;
}

// Whether bytes come, rather than an end.
bool Speaks(BIO& bio) {
  char byte;
  const time_t until = GiveUp();
  while (true) {
    if (BIO_read(&bio, &byte, 1) == 1) return true;
    if (!BIO_should_retry(&bio) || BIO_wait(&bio, until, kNapMs) != 1) return false;
  }
}

enum class Answer {
  kTls,
  kNone,    // the connection stands, and nothing comes
  kClosed,  // its end comes
  kAlert,   // TLS, and a refusal
  kOther,   // bytes that are no TLS
};

// Of a connection's other end, to a handshake.
Answer ShakeHands(BIO& tls) {
  if (BIO_do_connect_retry(&tls, kSeconds, kNapMs) == 1) return Answer::kTls;
  const unsigned long error = ERR_peek_last_error();  // NOLINT: OpenSSL's type
  const int reason = ERR_GET_REASON(error);
  if (ERR_GET_LIB(error) == ERR_LIB_BIO && reason == BIO_R_CONNECT_TIMEOUT) return Answer::kNone;
  if (ERR_GET_LIB(error) != ERR_LIB_SSL || reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
    return Answer::kClosed;
  }
  return reason >= SSL_AD_REASON_OFFSET ? Answer::kAlert : Answer::kOther;
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

// "the scheduler at 10.0.0.5:7400 speaks no TLS", and so on.
std::string At(const std::string& scheduler, absl::string_view says) {
  return absl::StrCat("the scheduler at ", scheduler, " ", says);
}

absl::Status NoWord(const std::string& scheduler, Answer answer) {
  if (answer == Answer::kNone) {
    return absl::UnavailableError(
        At(scheduler, absl::StrCat("takes connections and has said nothing for ", kSeconds,
                                   " seconds: it is stopped, or has more to do than its machine "
                                   "can; look for its process there")));
  }
  return absl::UnavailableError(
      At(scheduler,
         "closes each connection before it says anything: it is ending, or what listens "
         "there is no scheduler; compare the address with what the scheduler says when "
         "it starts"));
}

absl::Status WithoutTls(const std::string& scheduler, const std::string& process, BIO& tls) {
  const Answer answer = ShakeHands(tls);
  if (answer == Answer::kNone || answer == Answer::kClosed) return NoWord(scheduler, answer);
  if (answer == Answer::kOther) return absl::OkStatus();  // as it should
  if (process.empty()) {
    return absl::UnauthenticatedError(
        At(scheduler,
           "asks who calls; show your certificate: --certs DIR, or a context that has "
           "one; where its CA is, one is made by: strata certs issue operator me"));
  }
  return absl::UnauthenticatedError(
      At(scheduler, absl::StrCat("asks who calls, and this process has no certificate; start it "
                                 "with --certs DIR; where the CA is, DIR is made by: strata certs "
                                 "issue ",
                                 process)));
}

absl::Status WithTls(const std::string& scheduler, const std::string& process,
                     CredentialSource& mine, BIO& tls, const absl::Status& refused) {
  const Answer answer = ShakeHands(tls);
  const std::string why = Reason();
  // For its role alone: it is the port of another process of the cluster.
  if (absl::IsPermissionDenied(refused)) {
    const absl::string_view whose = refused.message();
    return absl::PermissionDeniedError(
        absl::StrCat(scheduler, " is no scheduler's address: what listens there shows a ",
                     whose.substr(0, whose.find(", and only ")),
                     "; give --scheduler HOST:PORT as the scheduler says it when it starts"));
  }
  if (!refused.ok()) {
    return absl::Status(refused.code(),
                        absl::StrCat("the scheduler at ", scheduler, ": ", refused.message(),
                                     " (compared with ca.crt of ", Mine(mine), ")"));
  }
  if (answer == Answer::kNone || answer == Answer::kClosed) return NoWord(scheduler, answer);
  if (answer == Answer::kOther) {
    return absl::UnauthenticatedError(
        At(scheduler,
           absl::StrCat("speaks no TLS (", why, "): it was started without --certs; ",
                        process.empty() ? absl::StrCat("start it with them, or give the command "
                                                       "--scheduler ",
                                                       scheduler, " --insecure")
                                        : "start it with them, or this process without")));
  }
  if (answer == Answer::kTls && Speaks(tls)) return absl::OkStatus();
  const std::string alert = Reason();
  if (alert.empty()) return absl::OkStatus();
  const auto current = mine.Current();
  return absl::UnauthenticatedError(
      At(scheduler, absl::StrCat("refuses your certificate (", alert, "): ", Mine(mine),
                                 "; show one of its cluster's CA that has not expired: ",
                                 RenewCommand(current->certificate.file, mine.self()))));
}

}  // namespace

absl::Status WhyNoHandshake(const std::string& scheduler,
                            const std::shared_ptr<CredentialSource>& mine,
                            const std::string& process) {
  if (!IsListened(scheduler)) return absl::OkStatus();
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
  return mine == nullptr ? WithoutTls(scheduler, process, *tls)
                         : WithTls(scheduler, process, *mine, *tls, refused);
}

}  // namespace strata
