// Deadlines of gRPC by the monotonic clock: what the machine's clock is set to does not move them.
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_DEADLINE_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_DEADLINE_H_

#include <grpc/support/time.h>

#include "absl/time/time.h"

namespace strata {

// `timeout` from now; never for an infinite one. For whatever takes a deadline in gRPC's C++
// interface: contexts, WaitForConnected, Shutdown.
gpr_timespec GrpcDeadline(absl::Duration timeout);

// How far off a deadline of any of gRPC's clocks is; zero where it is over, infinite where there is
// none.
absl::Duration TimeLeft(gpr_timespec deadline);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_DEADLINE_H_
