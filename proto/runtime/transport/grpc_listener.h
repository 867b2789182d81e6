// A server's side of the gRPC transport.
// Tested by tests/proto/runtime/transport/grpc_transport_test.cc
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_LISTENER_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_LISTENER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/runtime/transport/grpc_transport.h"
#include "proto/runtime/transport/transport.h"

namespace strata::grpc_internal {

absl::StatusOr<std::unique_ptr<DataListener>> StartListener(const GrpcTransportOptions& options,
                                                            const std::string& address,
                                                            DataHandler* handler);

}  // namespace strata::grpc_internal

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_LISTENER_H_
