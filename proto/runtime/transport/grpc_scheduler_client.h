// SchedulerClient over gRPC.
// Tested by tests/scheduler/scheduler_test.cc
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_SCHEDULER_CLIENT_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_SCHEDULER_CLIENT_H_

#include <memory>
#include <string>

#include "proto/runtime/transport/keepalive.h"
#include "proto/runtime/transport/process_tls.h"
#include "proto/runtime/transport/scheduler_client.h"

namespace strata {

// `address` is "host:port". Does not connect yet; each call waits for a connection up to its
// timeout, so that a scheduler that restarts meanwhile is no error. A scheduler that falls silent
// is given up by its lease, as `lease` has it (keepalive.h): every reply tells it there, and it
// must outlive the client. Null: the client has one of its own, the default until the first reply.
// With `tls` the process proves who it is, and calls a scheduler of its cluster alone; null: nobody
// is asked.
std::unique_ptr<SchedulerClient> MakeGrpcSchedulerClient(const std::string& address,
                                                         std::shared_ptr<ProcessTls> tls,
                                                         KnownLease* lease = nullptr);

// The same for a process that reports to the scheduler. As long as no report was answered, errors
// and log lines say why there is no connection where that is for the way that the two ends were
// started (WhyNoHandshake): one with certificates and the other without, or certificates that do
// not fit. They stay UNAVAILABLE, since such a process tries again. `process`: its role and name,
// as "server alpha".
std::unique_ptr<SchedulerClient> MakeNodeSchedulerClient(const std::string& address,
                                                         std::shared_ptr<ProcessTls> tls,
                                                         KnownLease* lease,
                                                         const std::string& process);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_SCHEDULER_CLIENT_H_
