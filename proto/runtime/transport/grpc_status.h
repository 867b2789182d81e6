// Our errors as gRPC's and back: the only place where they meet.
// Tested by tests/proto/runtime/transport/grpc_transport_test.cc
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_STATUS_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include <cstddef>

#include "absl/status/status.h"

namespace strata {

// Bytes of an error's text that are sent; the rest is cut and marked by "...". Texts travel
// percent-encoded in a header, three bytes for one at worst, and headers over 8 KiB break the call.
inline constexpr size_t kMaxStatusTextBytes = 2048;

grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_STATUS_H_
