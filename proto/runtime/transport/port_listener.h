// A port that a process listens on: it accepts connections, so many at a time, and gives each away
// to who serves it.
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_PORT_LISTENER_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_PORT_LISTENER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/transport/bind_policy.h"

namespace strata {

struct PortListenerOptions {
  std::string address;  // host:port; port 0 takes a free one
  BindScope scope = BindScope::kLoopbackOnly;
  // At a time. Further ones are accepted and closed at once, so that who connects learns it.
  size_t connections = 0;
  // A connection whose other end acknowledges nothing for so long is closed.
  absl::Duration silence = absl::Seconds(10);
};

// Thread-safe; one thread of its own from Accept on.
class PortListener {
 public:
  // `fd` of a connection, with what a server wants of it set; the callee closes it.
  using Take = std::function<void(int listener_fd, int fd)>;

  // The port is taken from now on; who connects waits for Accept.
  // ALREADY_EXISTS: another process has it. INVALID_ARGUMENT: no address of this machine.
  // PERMISSION_DENIED: bind policy, or a port that needs privileges. RESOURCE_EXHAUSTED: files.
  static absl::StatusOr<std::unique_ptr<PortListener>> Listen(const PortListenerOptions& options);
  virtual ~PortListener() = default;

  // Once.
  virtual void Accept(Take take) = 0;
  // Takes no connection any more, and calls `take` no more. Those that are open stay.
  virtual void Close() = 0;

  // With the real port.
  virtual const std::string& address() const = 0;
  virtual size_t open() const = 0;        // connections now
  virtual uint64_t accepted() const = 0;  // connections so far
  virtual uint64_t refused() const = 0;   // those that were too many
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_PORT_LISTENER_H_
