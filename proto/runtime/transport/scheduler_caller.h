// Calls of a scheduler inside one process, made as somebody: what a port asks of who calls it is
// asked there as well.
// Tested by tests/scheduler/scheduler_caller_test.cc
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_SCHEDULER_CALLER_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_SCHEDULER_CALLER_H_

#include <memory>

#include "absl/status/status.h"
#include "proto/runtime/credentials/caller.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"

namespace strata {

// PERMISSION_DENIED: the report is of another name or role than the caller's. OK of whom nobody
// asked.
absl::Status CheckReporter(const Caller& caller, const NodeReport& report);

// Of all calls PERMISSION_DENIED where rpc_policy.h has them for other roles than the caller's, or
// a report is not his own. `scheduler` outlives it.
std::unique_ptr<SchedulerClient> CallSchedulerAs(const Caller& caller, SchedulerClient* scheduler);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_SCHEDULER_CALLER_H_
