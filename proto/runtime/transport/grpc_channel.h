// A worker's side of the gRPC transport.
// Tested by tests/proto/runtime/transport/grpc_transport_test.cc
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_CHANNEL_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_CHANNEL_H_

#include <memory>

#include "absl/time/time.h"
#include "proto/runtime/transport/process_tls.h"
#include "proto/runtime/transport/transport.h"

namespace strata::grpc_internal {

// A completion queue with a thread of its own, shared by channels. When its last owner goes, calls
// in flight are cancelled and answered with UNAVAILABLE.
class ClientQueue;

std::shared_ptr<ClientQueue> MakeClientQueue();

struct ChannelOptions {
  absl::Duration lease;             // by which a silent server is given up
  std::shared_ptr<ProcessTls> tls;  // null: without
};
std::shared_ptr<DataChannel> MakeChannel(std::shared_ptr<ClientQueue> queue, const DataPeer& peer,
                                         const Caller& caller, const ChannelOptions& options);

}  // namespace strata::grpc_internal

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_CHANNEL_H_
