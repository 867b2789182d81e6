#include "proto/runtime/metrics/metrics_client.h"

#include <netdb.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/tls_context.h"
#include "proto/runtime/metrics/limited_connection.h"
#include "proto/runtime/transport/bind_policy.h"

namespace strata {
namespace {

using Failure = LimitedConnection::Failure;

// A socket that is being connected, closed at its end.
class Socket {
 public:
  Socket() = default;
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  absl::Status Open(const std::string& address) {
    const auto place = ParseHostPort(address);
    if (!place.ok()) return place.status();
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const std::string port = absl::StrCat(place->port);
    if (const int error = getaddrinfo(place->host.c_str(), port.c_str(), &hints, &found)) {
      return absl::UnavailableError(absl::StrCat(address, ": ", gai_strerror(error)));
    }
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
    fd_ = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const bool begun =
        fd_ >= 0 && (connect(fd_, found->ai_addr, found->ai_addrlen) == 0 || errno == EINPROGRESS);
    if (begun) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(address, ": connect: ", std::strerror(errno)));
  }
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

// One request, and what can be said of its failure.
class Fetch {
 public:
  Fetch(const MetricsRequest& request, int socket)
      : r_(request),
        rules_{.credentials = request.credentials,
               .roles = {Role::kScheduler, Role::kServer, Role::kWorker},
               .name = request.name,
               .refused = [this](const absl::Status& why) { refused_ = why; }},
        connection_(
            socket,
            {.deadline = request.clock->Now() + request.timeout, .read_bytes = kMaxMetricsBytes},
            *request.clock) {}

  absl::Status Begin() {
    if (!connection_.AwaitConnected()) return Broken("connect");
    if (r_.credentials == nullptr) return absl::OkStatus();
    context_.reset(SSL_CTX_new(TLS_client_method()));
    if (context_ == nullptr) return absl::InternalError("OpenSSL makes no context for TLS");
    if (absl::Status s = ApplyTlsRules(rules_, *context_); !s.ok()) return s;
    return connection_.SecureAsClient(*context_) ? absl::OkStatus() : Broken("TLS");
  }

  absl::Status Send(absl::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = connection_.Write(text.data(), text.size());
      if (sent <= 0) return Broken("send");
      text.remove_prefix(static_cast<size_t>(sent));
    }
    return absl::OkStatus();
  }

  // All that comes until the other side closes.
  absl::StatusOr<std::string> Receive() {
    std::string text;
    char block[4096];
    while (true) {
      const ssize_t got = connection_.Read(block, sizeof(block));
      if (got == 0) return text;
      if (got < 0) return Broken("receive");
      text.append(block, static_cast<size_t>(got));
    }
  }

 private:
  absl::Status Broken(absl::string_view what) const {
    if (!refused_.ok()) {
      return absl::Status(refused_.code(), absl::StrCat(r_.address, ": ", refused_.message()));
    }
    switch (connection_.failure()) {
      case Failure::kTime:
        return absl::DeadlineExceededError(absl::StrCat(r_.address, " does not answer in time"));
      case Failure::kBytes:
        return absl::ResourceExhaustedError(
            absl::StrCat(r_.address, " answers with more than ", kMaxMetricsBytes, " bytes"));
      default:
        return absl::UnavailableError(
            absl::StrCat(r_.address, ": ", what, ": ", connection_.why()));
    }
  }

  const MetricsRequest& r_;
  absl::Status refused_;
  const TlsRules rules_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{nullptr, &SSL_CTX_free};
  LimitedConnection connection_;
};

}  // namespace

absl::StatusOr<std::string> FetchMetrics(const MetricsRequest& request) {
  Socket socket;
  if (absl::Status s = socket.Open(request.address); !s.ok()) return s;
  Fetch fetch(request, socket.fd());
  if (absl::Status s = fetch.Begin(); !s.ok()) return s;
  // HTTP/1.0: the answer ends where the connection does, and is not chunked.
  if (absl::Status s = fetch.Send(absl::StrCat("GET /metrics HTTP/1.0\r\nHost: ", request.address,
                                               "\r\nConnection: close\r\n\r\n"));
      !s.ok()) {
    return s;
  }
  const auto answer = fetch.Receive();
  if (!answer.ok()) return answer.status();
  const size_t body = answer->find("\r\n\r\n");
  if (body == std::string::npos) {
    return absl::UnavailableError(absl::StrCat(request.address, " closed before it had answered"));
  }
  const std::vector<std::string> words =
      absl::StrSplit(answer->substr(0, answer->find('\r')), absl::MaxSplits(' ', 2));
  if (words.size() < 2 || !absl::StartsWith(words[0], "HTTP/") || words[1] != "200") {
    return absl::InternalError(absl::StrCat(request.address, " answers '",
                                            answer->substr(0, std::min<size_t>(body, 60)), "'"));
  }
  return answer->substr(body + 4);
}

}  // namespace strata
