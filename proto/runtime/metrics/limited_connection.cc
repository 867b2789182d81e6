#include "proto/runtime/metrics/limited_connection.h"

#include <fcntl.h>
#include <openssl/bio.h>
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

int SendWithoutSignal(BIO* bio, const char* bytes, int size) {
  int socket = -1;
  BIO_get_fd(bio, &socket);
  const auto sent = static_cast<int>(send(socket, bytes, static_cast<size_t>(size), MSG_NOSIGNAL));
  BIO_clear_retry_flags(bio);
  if (sent <= 0 && BIO_sock_should_retry(sent) != 0) BIO_set_retry_write(bio);
  return sent;
}

// OpenSSL's own, but that an end which has left is an error, and no SIGPIPE: that would end a
// program which does not ignore it.
const BIO_METHOD* SocketMethod() {
  static const BIO_METHOD* const method = [] {
    const BIO_METHOD* const own = BIO_s_socket();
    BIO_METHOD* const made = BIO_meth_new(BIO_TYPE_SOCKET, "socket without SIGPIPE");
    if (made == nullptr) return own;
    BIO_meth_set_write(made, SendWithoutSignal);
    BIO_meth_set_read(made, BIO_meth_get_read(own));
    BIO_meth_set_ctrl(made, BIO_meth_get_ctrl(own));
    BIO_meth_set_create(made, BIO_meth_get_create(own));
    BIO_meth_set_destroy(made, BIO_meth_get_destroy(own));
    return static_cast<const BIO_METHOD*>(made);
  }();
  return method;
}

}  // namespace

LimitedConnection::LimitedConnection(int socket, const ConnectionLimits& limits, const Clock& clock)
    : socket_(socket), deadline_(limits.deadline), clock_(clock), left_(limits.read_bytes) {
  fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK);
  fcntl(socket_, F_SETFD, FD_CLOEXEC);
}

LimitedConnection::~LimitedConnection() { SSL_free(tls_); }

bool LimitedConnection::AwaitConnected() {
  if (!Await(POLLOUT, deadline_)) return Failed(Failure::kTime) >= 0;
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 || Failed(Failure::kOther, std::strerror(error)) >= 0;
}

bool LimitedConnection::Secure(ssl_ctx_st& context, Part part) {
  tls_ = SSL_new(&context);
  BIO* const bio = BIO_new(SocketMethod());
  if (tls_ == nullptr || bio == nullptr) {
    BIO_free(bio);
    ERR_clear_error();
    return Failed(Failure::kOther, "OpenSSL makes no connection") >= 0;
  }
  BIO_set_fd(bio, socket_, BIO_NOCLOSE);
  SSL_set_bio(tls_, bio, bio);
  secured_ = Move([&] {
               ERR_clear_error();
               return ByTls(part == Part::kServer ? SSL_accept(tls_) : SSL_connect(tls_));
             }) > 0;
  return secured_;
}

ssize_t LimitedConnection::Read(char* to, size_t size) {
  if (next_ == end_) {
    const size_t room = std::min(buffer_.size(), left_);
    if (room == 0) return Failed(Failure::kBytes);
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

ssize_t LimitedConnection::Write(const char* from, size_t size) {
  constexpr size_t kAtOnce = size_t{1} << 20;  // SSL_write takes an int
  const size_t part = std::min(size, kAtOnce);
  return Move([&]() -> Tried {
    if (tls_ == nullptr) return Plain(send(socket_, from, part, MSG_NOSIGNAL), POLLOUT);
    ERR_clear_error();
    return ByTls(SSL_write(tls_, from, static_cast<int>(part)));
  });
}

void LimitedConnection::End() {
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

ssize_t LimitedConnection::Move(const std::function<Tried()>& once) {
  while (true) {
    const Tried tried = once();
    if (tried.wanted == 0) return tried.bytes;
    if (!Await(tried.wanted, deadline_)) return Failed(Failure::kTime);
  }
}

LimitedConnection::Tried LimitedConnection::ByTls(int result) {
  if (result > 0) return {.bytes = result};
  const int error = SSL_get_error(tls_, result);
  const char* const why = ERR_reason_error_string(ERR_peek_error());
  ERR_clear_error();
  switch (error) {
    case SSL_ERROR_WANT_READ:
      return {.wanted = POLLIN};
    case SSL_ERROR_WANT_WRITE:
      return {.wanted = POLLOUT};
    case SSL_ERROR_ZERO_RETURN:
      return {.bytes = 0};
    default:
      return {.bytes = Failed(Failure::kOther, why == nullptr ? "the other end left" : why)};
  }
}

LimitedConnection::Tried LimitedConnection::Plain(ssize_t result, short wanted) {
  if (result >= 0) return {.bytes = result};
  if (errno == EAGAIN || errno == EINTR) return {.wanted = wanted};
  return {.bytes = Failed(Failure::kOther, std::strerror(errno))};
}

ssize_t LimitedConnection::Failed(Failure how, const char* why) {
  failure_ = how;
  why_ = why;
  return -1;
}

bool LimitedConnection::Await(short events, absl::Time until) const {
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
