// A client's connection to a port of ours: plain or TLS, and never for longer or with more bytes
// than it is given.
// Tested by tests/proto/runtime/metrics/metrics_server_test.cc
// Tested by tests/proto/runtime/metrics/metrics_tls_test.cc
#ifndef STRATA_PROTO_RUNTIME_METRICS_CLIENT_CONNECTION_H_
#define STRATA_PROTO_RUNTIME_METRICS_CLIENT_CONNECTION_H_

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <functional>

#include "absl/time/time.h"
#include "proto/runtime/base/clock.h"

struct ssl_ctx_st;
struct ssl_st;

namespace strata {

struct ConnectionLimits {
  absl::Time deadline;       // of the clock: for all that is read and written
  size_t request_bytes = 0;  // so many are read
};

// One thread's. The socket is not closed here.
class ClientConnection {
 public:
  // `clock` outlives the connection. The socket waits for nothing from here on (O_NONBLOCK).
  ClientConnection(int socket, const ConnectionLimits& limits, const Clock& clock);
  ~ClientConnection();
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  // The server's part of a handshake; what is read and written later goes by TLS. False: the
  // client was not let in, or did not come to an end in time.
  bool Secure(ssl_ctx_st& context);

  // As of recv and send: bytes, 0 where the client has ended, -1 for errors and past a limit.
  ssize_t Read(char* to, size_t size);
  ssize_t Write(const char* from, size_t size);

  // Tells the client that nothing more comes, and waits a moment until it has heard that: closing a
  // socket with unread bytes in it would take the answer back.
  void End();

  int socket() const { return socket_; }
  const ssl_st* tls() const { return tls_; }

 private:
  struct Tried {
    ssize_t bytes = 0;
    short wanted = 0;  // what the next try waits for, as poll has it; 0: there is none
  };
  // Until it moves bytes, or cannot.
  ssize_t Move(const std::function<Tried()>& once);
  Tried ByTls(int result) const;
  Tried Plain(ssize_t result, short wanted) const;
  bool Await(short events, absl::Time until) const;

  const int socket_;
  const absl::Time deadline_;
  const Clock& clock_;
  ssl_st* tls_ = nullptr;
  bool secured_ = false;
  size_t left_;  // of the bytes that may be read
  // httplib asks for single bytes.
  std::array<char, 4096> buffer_;
  size_t next_ = 0;
  size_t end_ = 0;
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_METRICS_CLIENT_CONNECTION_H_
