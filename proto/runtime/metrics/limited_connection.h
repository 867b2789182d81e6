// A connection, plain or TLS, that never takes longer or reads more bytes than it is given.
#ifndef STRATA_PROTO_RUNTIME_METRICS_LIMITED_CONNECTION_H_
#define STRATA_PROTO_RUNTIME_METRICS_LIMITED_CONNECTION_H_

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "proto/runtime/base/clock.h"

struct ssl_ctx_st;
struct ssl_st;

namespace strata {

struct ConnectionLimits {
  absl::Time deadline;    // of the clock: for all that is read and written
  size_t read_bytes = 0;  // more are not read
};

// One thread's. The socket is not closed here.
class LimitedConnection {
 public:
  // `clock` outlives the connection. The socket waits for nothing from here on (O_NONBLOCK).
  LimitedConnection(int socket, const ConnectionLimits& limits, const Clock& clock);
  ~LimitedConnection();
  LimitedConnection(const LimitedConnection&) = delete;
  LimitedConnection& operator=(const LimitedConnection&) = delete;

  // Of a socket that is being connected: until it is, or cannot be.
  bool AwaitConnected();

  // One part of a handshake; what is read and written later goes by TLS. False: one end refused the
  // other, or it did not end in time.
  bool SecureAsServer(ssl_ctx_st& context) { return Secure(context, Part::kServer); }
  bool SecureAsClient(ssl_ctx_st& context) { return Secure(context, Part::kClient); }

  // As of recv and send: bytes, 0 where the client has ended, -1 for errors and past a limit.
  ssize_t Read(char* to, size_t size);
  ssize_t Write(const char* from, size_t size);

  // Tells the other end that nothing more comes, and waits a moment until it has heard that:
  // closing a socket with unread bytes in it would take the answer back.
  void End();

  // Of the last failure: that its time was over, or that so many bytes were read, or what else.
  enum class Failure : uint8_t { kNone, kTime, kBytes, kOther };
  Failure failure() const { return failure_; }
  const std::string& why() const { return why_; }  // of kOther, for people

  int socket() const { return socket_; }
  const ssl_st* tls() const { return tls_; }

 private:
  enum class Part : uint8_t { kServer, kClient };
  struct Tried {
    ssize_t bytes = 0;
    short wanted = 0;  // what the next try waits for, as poll has it; 0: there is none
  };
  // Until it moves bytes, or cannot.
  ssize_t Move(const std::function<Tried()>& once);
  Tried ByTls(int result);
  Tried Plain(ssize_t result, short wanted);
  bool Secure(ssl_ctx_st& context, Part part);
  bool Await(short events, absl::Time until) const;
  ssize_t Failed(Failure how, const char* why = "");

  const int socket_;
  const absl::Time deadline_;
  const Clock& clock_;
  ssl_st* tls_ = nullptr;
  bool secured_ = false;
  size_t left_;  // of the bytes that may be read
  Failure failure_ = Failure::kNone;
  std::string why_;
  // httplib asks for single bytes.
  std::array<char, 4096> buffer_;
  size_t next_ = 0;
  size_t end_ = 0;
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_METRICS_LIMITED_CONNECTION_H_
