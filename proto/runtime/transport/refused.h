// Whether nobody listens where a call went: what a peer that stands still, or is cut off, never
// says.
// Tested by tests/proto/runtime/transport/keepalive_test.cc
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_REFUSED_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_REFUSED_H_

#include "absl/status/status.h"

namespace strata {

// Whether a call's UNAVAILABLE says that the system of the peer's machine refused the connection.
bool IsRefused(const absl::Status& status);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_REFUSED_H_
