// Connections to a port by somebody who speaks neither TLS nor gRPC.
#ifndef STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_RAW_SOCKETS_H_
#define STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_RAW_SOCKETS_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

namespace strata::testing {

class RawSocket {
 public:
  // `address`: "127.0.0.1:PORT".
  explicit RawSocket(const std::string& address)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    REQUIRE(connect(fd_, reinterpret_cast<sockaddr*>(&at), sizeof(at)) == 0);
    const timeval patience = {60, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  ~RawSocket() {
    if (fd_ >= 0) close(fd_);
  }
  RawSocket(RawSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RawSocket& operator=(RawSocket&&) = delete;

  void Send(const std::string& bytes) {
    REQUIRE(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
  }
  // Waits until the other end closes, whatever it says before; false: it has not for a minute.
  bool AwaitEnd() {
    char bytes[4096];
    ssize_t n = 0;
    while ((n = recv(fd_, bytes, sizeof(bytes), 0)) > 0) {
    }
    return n == 0 || errno == ECONNRESET;
  }

 private:
  int fd_;
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_RAW_SOCKETS_H_
