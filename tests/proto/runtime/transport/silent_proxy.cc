#include "tests/proto/runtime/transport/silent_proxy.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace strata::testing {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<uint16_t>(port));
  return at;
}

}  // namespace

SilentProxy::SilentProxy(const std::string& to) : port_(std::stoi(to.substr(to.rfind(':') + 1))) {
  listen_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at = Loopback(0);
  socklen_t size = sizeof(at);
  REQUIRE(bind(listen_, reinterpret_cast<sockaddr*>(&at), size) == 0);
  REQUIRE(listen(listen_, 16) == 0);
  REQUIRE(getsockname(listen_, reinterpret_cast<sockaddr*>(&at), &size) == 0);
  address_ = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  REQUIRE(pipe(wake_) == 0);
  thread_ = std::thread([this] { Run(); });
}

SilentProxy::~SilentProxy() {
  close(wake_[1]);  // ends the thread
  thread_.join();
  for (const int fd : ends_) {
    if (fd >= 0) close(fd);
  }
  close(listen_);
  close(wake_[0]);
}

void SilentProxy::Accept() {
  const int from = accept4(listen_, nullptr, nullptr, SOCK_CLOEXEC);
  if (from < 0) return;
  ++connections_;
  const int to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in at = Loopback(port_);
  // What connects while nothing passes is left alone with the kernel's handshake.
  if (!silent_) (void)connect(to, reinterpret_cast<const sockaddr*>(&at), sizeof(at));
  ends_.push_back(from);
  ends_.push_back(to);
}

bool SilentProxy::Pass(size_t end) {
  char bytes[1 << 16];
  const ssize_t n = read(ends_[end], bytes, sizeof(bytes));
  if (n <= 0) return false;
  for (ssize_t at = 0; at < n && !silent_;) {
    const ssize_t sent =
        send(ends_[end ^ 1], bytes + at, static_cast<size_t>(n - at), MSG_NOSIGNAL);
    if (sent <= 0) break;
    at += sent;
  }
  return true;
}

void SilentProxy::Run() {
  while (true) {
    std::vector<pollfd> fds = {{wake_[0], POLLIN, 0}, {listen_, POLLIN, 0}};
    for (const int fd : ends_) fds.push_back({fd, POLLIN, 0});  // negative: left out
    if (poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[0].revents != 0) return;
    if (fds[1].revents != 0) Accept();
    for (size_t i = 2; i < fds.size(); ++i) {
      const size_t end = i - 2;
      if (fds[i].revents == 0 || ends_[end] < 0 || Pass(end)) continue;
      if (silent_) {  // nobody hears of it
        close(ends_[end]);
        ends_[end] = -1;
        continue;
      }
      for (const size_t e : {end, end ^ 1}) {
        if (ends_[e] >= 0) close(ends_[e]);
        ends_[e] = -1;
      }
    }
  }
}

}  // namespace strata::testing
