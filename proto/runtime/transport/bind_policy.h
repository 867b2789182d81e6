// What a process may listen on.
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_BIND_POLICY_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_BIND_POLICY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace strata {

struct HostPort {
  std::string host;  // without brackets
  uint16_t port = 0;
};

// "host:port" or "[ipv6]:port". INVALID_ARGUMENT says what is wrong.
absl::StatusOr<HostPort> ParseHostPort(absl::string_view address);

enum class BindScope : uint8_t {
  kLoopbackOnly,      // the default
  kAnywhereInsecure,  // the user gave --insecure
  kAnywhereTls,       // the user gave --certs: who connects is asked who he is
};

// OK when `address` may be listened on: with kLoopbackOnly 127.0.0.0/8, ::1 and "localhost", else
// any address. PERMISSION_DENIED says why not and what to do; INVALID_ARGUMENT for what is no
// address. Pure: no name is resolved, so a name of the machine itself is refused.
absl::Status CheckBindAddress(absl::string_view address, BindScope scope);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_BIND_POLICY_H_
