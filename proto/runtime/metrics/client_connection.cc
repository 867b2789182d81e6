#include "proto/runtime/metrics/client_connection.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace strata {
namespace {

// How long a client has to hear that the connection has ended, and how much it may still send.
constexpr absl::Duration kEndWithin = absl::Seconds(1);
constexpr size_t kEndBytes = size_t{64} << 10;

}  // namespace

ClientConnection::ClientConnection(int socket, const ConnectionLimits& limits, const Clock& clock)
    : socket_(socket), deadline_(limits.deadline), clock_(clock), left_(limits.request_bytes) {
  fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK);
  fcntl(socket_, F_SETFD, FD_CLOEXEC);
}

ClientConnection::~ClientConnection() { SSL_free(tls_); }

bool ClientConnection::Secure(ssl_ctx_st& context) {
  tls_ = SSL_new(&context);
  if (tls_ == nullptr || SSL_set_fd(tls_, socket_) != 1) {
    ERR_clear_error();
    return false;
  }
  secured_ = Move([&] {
               ERR_clear_error();
               return ByTls(SSL_accept(tls_));
             }) > 0;
  return secured_;
}

ssize_t ClientConnection::Read(char* to, size_t size) {
  if (next_ == end_) {
    const size_t room = std::min(buffer_.size(), left_);
    if (room == 0) return -1;
    const ssize_t got = Move([&]() -> Tried {
      if (tls_ == nullptr) return Plain(recv(socket_, buffer_.data(), room, 0), POLLIN);
      ERR_clear_error();
      return ByTls(SSL_read(tls_, buffer_.data(), static_cast<int>(room)));
    });
    if (got <= 0) return got;
    next_ = 0;
    end_ = static_cast<size_t>(got);
    left_ -= end_;
  }
  const size_t given = std::min(size, end_ - next_);
  std::memcpy(to, buffer_.data() + next_, given);
  next_ += given;
  return static_cast<ssize_t>(given);
}

ssize_t ClientConnection::Write(const char* from, size_t size) {
  constexpr size_t kAtOnce = size_t{1} << 20;  // SSL_write takes an int
  const size_t part = std::min(size, kAtOnce);
  return Move([&]() -> Tried {
    if (tls_ == nullptr) return Plain(send(socket_, from, part, MSG_NOSIGNAL), POLLOUT);
    ERR_clear_error();
    return ByTls(SSL_write(tls_, from, static_cast<int>(part)));
  });
}

void ClientConnection::End() {
  if (secured_) SSL_shutdown(tls_);
  ERR_clear_error();
  if (shutdown(socket_, SHUT_WR) != 0) return;
  const absl::Time until = std::min(deadline_, clock_.Now() + kEndWithin);
  for (size_t dropped = 0; dropped < kEndBytes && Await(POLLIN, until);) {
    const ssize_t got = recv(socket_, buffer_.data(), buffer_.size(), 0);
    if (got <= 0) return;
    dropped += static_cast<size_t>(got);
  }
}

ssize_t ClientConnection::Move(const std::function<Tried()>& once) {
  while (true) {
    const Tried tried = once();
    if (tried.wanted == 0) return tried.bytes;
    if (!Await(tried.wanted, deadline_)) return -1;
  }
}

ClientConnection::Tried ClientConnection::ByTls(int result) const {
  if (result > 0) return {.bytes = result};
  const int error = SSL_get_error(tls_, result);
  ERR_clear_error();
  switch (error) {
    case SSL_ERROR_WANT_READ:
      return {.wanted = POLLIN};
    case SSL_ERROR_WANT_WRITE:
      return {.wanted = POLLOUT};
    case SSL_ERROR_ZERO_RETURN:
      return {.bytes = 0};
    default:
      return {.bytes = -1};
  }
}

ClientConnection::Tried ClientConnection::Plain(ssize_t result, short wanted) const {
  if (result >= 0) return {.bytes = result};
  if (errno == EAGAIN || errno == EINTR) return {.wanted = wanted};
  return {.bytes = -1};
}

bool ClientConnection::Await(short events, absl::Time until) const {
  while (true) {
    const absl::Duration left = until - clock_.Now();
    if (left <= absl::ZeroDuration()) return false;
    pollfd waits = {socket_, events, 0};
    const int64_t ms = absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)));
    const int ready = poll(&waits, 1, static_cast<int>(std::min<int64_t>(ms, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

}  // namespace strata
