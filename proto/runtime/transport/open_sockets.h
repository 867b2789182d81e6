// Which sockets that were given away are still open. gRPC tells nobody when it closes one: the
// kernel is asked whether a number is still the socket that it was.
// Tested by tests/proto/runtime/transport/port_listener_test.cc
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_OPEN_SOCKETS_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_OPEN_SOCKETS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace strata {

// Of this process, and unlike that of any other socket since the machine began. Nothing: `fd` is no
// open socket.
std::optional<uint64_t> SocketCookie(int fd);

// One thread at a time.
class OpenSockets {
 public:
  // Takes one, unless `most` are open.
  bool Add(int fd, size_t most);
  // As of now.
  size_t Count();

 private:
  void ForgetClosed();

  // Cookies by number. A number that comes again was closed meanwhile.
  std::map<int, uint64_t> sockets_;
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_OPEN_SOCKETS_H_
