// A server with a port under TLS, and a channel of somebody who calls it.
#ifndef STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_CALLED_SERVER_H_
#define STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_CALLED_SERVER_H_

#include <catch2/catch.hpp>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/transport/grpc_transport.h"
#include "proto/runtime/transport/process_tls.h"
#include "proto/runtime/transport/transport.h"
#include "proto/wire/buffer.h"

namespace strata::testing {

// `handler` outlives it.
class CalledServer {
 public:
  CalledServer(const std::shared_ptr<ProcessTls>& server, const std::shared_ptr<ProcessTls>& caller,
               DataHandler* handler)
      : serving_(MakeGrpcTransport({.tls = server})),
        listener_(serving_->Listen("127.0.0.1:0", handler)),
        calling_(MakeGrpcTransport({.tls = caller})) {
    REQUIRE(listener_.ok());
    channel_ = calling_->Connect({(*listener_)->address(), server->self().name}, SelfOf(caller));
  }
  DataChannel& channel() { return *channel_; }
  absl::Status Pull(absl::Duration patience) {
    return channel_->CallAndWait(DataMethod::kPull, Buffer(), patience).status();
  }

 private:
  const std::unique_ptr<DataTransport> serving_;
  const absl::StatusOr<std::unique_ptr<DataListener>> listener_;
  const std::unique_ptr<DataTransport> calling_;
  std::shared_ptr<DataChannel> channel_;
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_CALLED_SERVER_H_
