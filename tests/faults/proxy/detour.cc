// Preloaded into the programs: each connection on loopback that they make goes to the proxy at
// STRATA_DETOUR, "127.0.0.1:PORT", which is told who makes it (the flag --name) and to where.
//
// With our own declaration of connect: that of its header has other parameters for g++.
#include "tests/faults/proxy/detour.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

using strata::testing::kDetourAddress;
using strata::testing::kDetourHead;
using strata::testing::kDetourName;

using Connect = int(int, const sockaddr*, socklen_t);

// Of "--name=..." on the command line.
const char* Name() {
  static char name[kDetourName] = "";
  static const bool read = [] {
    char line[4096] = "";
    const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    const ssize_t size = fd < 0 ? 0 : ::read(fd, line, sizeof line - 1);
    if (fd >= 0) close(fd);
    for (ssize_t at = 0; at < size; at += static_cast<ssize_t>(strlen(line + at)) + 1) {
      if (strncmp(line + at, "--name=", 7) == 0) snprintf(name, sizeof name, "%s", line + at + 7);
    }
    return true;
  }();
  (void)read;
  return name;
}

// The port of a stream to loopback; 0: anything else.
uint16_t PortOf(int fd, const sockaddr* to, socklen_t size) {
  int type = 0;
  socklen_t length = sizeof type;
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM) return 0;
  if (to->sa_family == AF_INET && size >= sizeof(sockaddr_in)) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(to);
    return v4->sin_addr.s_addr == htonl(INADDR_LOOPBACK) ? v4->sin_port : 0;
  }
  if (to->sa_family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(to);
    static const uint8_t kMapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
    return memcmp(&v6->sin6_addr, kMapped, sizeof kMapped) == 0 ? v6->sin6_port : 0;
  }
  return 0;
}

}  // namespace

extern "C" int connect(int fd, const sockaddr* to, socklen_t size) {
  static const auto next = reinterpret_cast<Connect*>(dlsym(RTLD_NEXT, "connect"));
  const char* proxy = getenv("STRATA_DETOUR");
  const uint16_t port = to == nullptr ? 0 : PortOf(fd, to, size);
  if (proxy == nullptr || port == 0) return next(fd, to, size);
  const char* colon = strrchr(proxy, ':');
  const auto proxy_port = htons(static_cast<uint16_t>(colon == nullptr ? 0 : atoi(colon + 1)));
  sockaddr_storage there{};
  memcpy(&there, to, size);
  if (to->sa_family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(&there)->sin_port = proxy_port;
  } else {
    reinterpret_cast<sockaddr_in6*>(&there)->sin6_port = proxy_port;
  }
  // The proxy's kernel takes it at once, and the head fits any buffer.
  const int flags = fcntl(fd, F_GETFL);
  fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
  int result = next(fd, reinterpret_cast<const sockaddr*>(&there), size);
  if (result == 0) {
    char head[kDetourHead] = "";
    snprintf(head, kDetourName, "%s", Name());
    snprintf(head + kDetourName, kDetourAddress, "127.0.0.1:%u", ntohs(port));
    if (send(fd, head, sizeof head, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof head)) {
      errno = ECONNREFUSED;
      result = -1;
    }
  }
  const int error = errno;
  fcntl(fd, F_SETFL, flags);
  errno = error;
  return result;
}
