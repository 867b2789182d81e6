// SchedulerClient over gRPC.
// Tested by tests/scheduler/scheduler_test.cc
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_SCHEDULER_CLIENT_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_SCHEDULER_CLIENT_H_

#include <memory>
#include <string>

#include "proto/runtime/transport/scheduler_client.h"

namespace strata {

// `address` is "host:port". Does not connect yet; each call waits for a connection up to its
// timeout, so that a scheduler that restarts meanwhile is no error.
std::unique_ptr<SchedulerClient> MakeGrpcSchedulerClient(const std::string& address);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_SCHEDULER_CLIENT_H_
