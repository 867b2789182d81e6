#include "tools/cli/inspect/top_scrape.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/transport/bind_policy.h"

namespace strata {
namespace {

// A connected socket, closed at its end.
class Connection {
 public:
  explicit Connection(std::string address, absl::Time deadline)
      : address_(std::move(address)), deadline_(deadline) {}
  ~Connection() {
    if (fd_ >= 0) close(fd_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  absl::Status Open() {
    auto place = ParseHostPort(address_);
    if (!place.ok()) return place.status();
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const std::string port = absl::StrCat(place->port);
    if (const int error = getaddrinfo(place->host.c_str(), port.c_str(), &hints, &found)) {
      return absl::UnavailableError(absl::StrCat(address_, ": ", gai_strerror(error)));
    }
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
    fd_ = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0) return Broken("socket", errno);
    if (connect(fd_, found->ai_addr, found->ai_addrlen) == 0) return absl::OkStatus();
    if (errno != EINPROGRESS) return Broken("connect", errno);
    if (absl::Status s = Await(POLLOUT); !s.ok()) return s;
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
    return error == 0 ? absl::OkStatus() : Broken("connect", error);
  }

  absl::Status Send(absl::string_view text) {
    while (!text.empty()) {
      const ssize_t n = send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (n > 0) {
        text.remove_prefix(static_cast<size_t>(n));
      } else if (errno != EAGAIN && errno != EINTR) {
        return Broken("send", errno);
      } else if (absl::Status s = Await(POLLOUT); !s.ok()) {
        return s;
      }
    }
    return absl::OkStatus();
  }

  // All that comes until the other side closes.
  absl::StatusOr<std::string> Receive() {
    std::string text;
    char block[16384];
    while (true) {
      const ssize_t n = recv(fd_, block, sizeof(block), 0);
      if (n == 0) return text;
      if (n > 0) {
        text.append(block, static_cast<size_t>(n));
        if (text.size() > kMaxScrapeBytes) {
          return absl::ResourceExhaustedError(
              absl::StrCat(address_, " answers with more than ", kMaxScrapeBytes, " bytes"));
        }
      } else if (errno != EAGAIN && errno != EINTR) {
        return Broken("receive", errno);
      } else if (absl::Status s = Await(POLLIN); !s.ok()) {
        return s;
      }
    }
  }

 private:
  absl::Status Broken(const char* what, int error) const {
    return absl::UnavailableError(absl::StrCat(address_, ": ", what, ": ", std::strerror(error)));
  }
  absl::Status Await(short events) const {
    const int64_t left = absl::ToInt64Milliseconds(deadline_ - Clock::Real()->Now());
    pollfd wait = {fd_, events, 0};
    if (left > 0 && poll(&wait, 1, static_cast<int>(left)) != 0) return absl::OkStatus();
    return absl::DeadlineExceededError(absl::StrCat(address_, " does not answer in time"));
  }

  const std::string address_;
  const absl::Time deadline_;
  int fd_ = -1;
};

}  // namespace

MetricValues ParseMetrics(absl::string_view text) {
  MetricValues values;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.empty() || line[0] == '#') continue;
    const size_t name_end = line.find_first_of("{ ");
    if (name_end == absl::string_view::npos || name_end == 0) continue;
    absl::string_view rest = line.substr(name_end);
    if (rest[0] == '{') {
      const size_t labels_end = rest.rfind('}');
      if (labels_end == absl::string_view::npos) continue;
      rest = rest.substr(labels_end + 1);
    }
    // The value; a timestamp may follow.
    const std::vector<absl::string_view> words = absl::StrSplit(rest, ' ', absl::SkipEmpty());
    double value = 0;
    if (words.empty() || !absl::SimpleAtod(words[0], &value) || !std::isfinite(value)) continue;
    values[std::string(line.substr(0, name_end))] += value;
  }
  return values;
}

absl::StatusOr<MetricValues> Scrape(const std::string& address, absl::Duration timeout) {
  Connection connection(address, Clock::Real()->Now() + timeout);
  if (absl::Status s = connection.Open(); !s.ok()) return s;
  // HTTP/1.0: the answer ends where the connection does, and is not chunked.
  if (absl::Status s = connection.Send(absl::StrCat("GET /metrics HTTP/1.0\r\nHost: ", address,
                                                    "\r\nConnection: close\r\n\r\n"));
      !s.ok()) {
    return s;
  }
  auto answer = connection.Receive();
  if (!answer.ok()) return answer.status();
  const size_t body = answer->find("\r\n\r\n");
  if (body == std::string::npos) {
    return absl::UnavailableError(absl::StrCat(address, " closed before it had answered"));
  }
  const std::vector<std::string> words =
      absl::StrSplit(answer->substr(0, answer->find('\r')), absl::MaxSplits(' ', 2));
  if (words.size() < 2 || !absl::StartsWith(words[0], "HTTP/") || words[1] != "200") {
    return absl::InternalError(
        absl::StrCat(address, " answers '", answer->substr(0, std::min<size_t>(body, 60)), "'"));
  }
  return ParseMetrics(absl::string_view(*answer).substr(body + 4));
}

}  // namespace strata
