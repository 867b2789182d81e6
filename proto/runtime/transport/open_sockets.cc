#include "proto/runtime/transport/open_sockets.h"

#include <asm/socket.h>
#include <sys/socket.h>

namespace strata {

std::optional<uint64_t> SocketCookie(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof(cookie);
  if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) return std::nullopt;
  return cookie;
}

bool OpenSockets::Add(int fd, size_t most) {
  const std::optional<uint64_t> cookie = SocketCookie(fd);
  if (!cookie) return false;
  sockets_.erase(fd);
  if (sockets_.size() >= most) ForgetClosed();
  if (sockets_.size() >= most) return false;
  sockets_[fd] = *cookie;
  return true;
}

size_t OpenSockets::Count() {
  ForgetClosed();
  return sockets_.size();
}

void OpenSockets::ForgetClosed() {
  std::erase_if(sockets_, [](const auto& of) { return SocketCookie(of.first) != of.second; });
}

}  // namespace strata
