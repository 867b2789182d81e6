// How many connections a process's port has, and how long one may last: so that whoever connects,
// with a certificate or without, holds up nobody who was there before.
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_PORT_LIMITS_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_PORT_LIMITS_H_

#include <cstddef>

#include "absl/time/time.h"

namespace strata {

struct PortLimits {
  // Handshakes included; further ones are closed at once. Never more than half of the files that
  // the process may open.
  size_t connections = 2048;
  // A connection that has not ended its handshake, of TLS and of HTTP/2, is closed after so long.
  absl::Duration handshake_time = absl::Seconds(10);
  // With certificates a connection is made anew after so long, which gRPC spreads by a tenth: its
  // handshake shows the newest certificates. Clients are told, and make later calls on a new one.
  absl::Duration connection_age = absl::Hours(1);
  // How long calls that are under way then may go on; longer ones are broken off (UNAVAILABLE).
  absl::Duration connection_grace = absl::Minutes(10);
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_PORT_LIMITS_H_
