// The data plane inside one process: calls go straight to the handler, and messages are shared, not
// copied.
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_INPROC_TRANSPORT_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_INPROC_TRANSPORT_H_

#include <memory>

#include "proto/runtime/base/executor.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/transport/transport.h"

namespace strata {

struct InProcOptions {
  // Where handlers run; must outlive the transport, its listeners and channels. Null: in the thread
  // that calls.
  Executor* executor = nullptr;
  // Says when a call has had no answer for too long; outlives all of them as well.
  Timer* timer = Timer::Real();
};

// Addresses are names of the caller's choice, of this transport alone; handlers see the Caller as
// Connect was given it. `done` runs in the thread
// that replies, in the caller's thread, or in the transport's thread for deadlines.
std::unique_ptr<DataTransport> MakeInProcTransport(InProcOptions options = {});

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_INPROC_TRANSPORT_H_
