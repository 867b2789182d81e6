#include "tests/proto/runtime/transport/unread_calls.h"

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/channel_arguments.h>

#include <catch2/catch.hpp>
#include <utility>
#include <vector>

namespace strata::testing {
namespace {

// What may be sent of a reply that nobody reads.
constexpr int kWindowBytes = 5;

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

}  // namespace

struct UnreadCalls::State {
  struct Open {
    grpc::ClientContext context;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
    grpc::Status status;
  };
  // False: what was begun last has failed.
  bool Await() {
    void* tag = nullptr;
    bool ok = false;
    REQUIRE(queue.Next(&tag, &ok));
    return ok;
  }

  explicit State(const std::shared_ptr<grpc::Channel>& channel) : stub(channel) {}
  grpc::GenericStub stub;
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<Open>> open;
};

UnreadCalls::UnreadCalls(const std::shared_ptr<ProcessTls>& tls, const std::string& address,
                         Role listens)
    : state_(std::make_unique<State>(grpc::CreateCustomChannel(
          address, tls->ChannelTo(listens, std::nullopt), Arguments()))) {}

UnreadCalls::~UnreadCalls() {
  for (const auto& call : state_->open) {
    call->context.TryCancel();
    call->stream->Finish(&call->status, nullptr);
    state_->Await();
  }
  state_->queue.Shutdown();
}

void UnreadCalls::Call(const std::string& path, const std::string& request) {
  auto call = std::make_unique<State::Open>();
  call->context.set_wait_for_ready(true);
  call->stream = state_->stub.PrepareCall(&call->context, path, &state_->queue);
  call->stream->StartCall(nullptr);
  REQUIRE(state_->Await());
  const grpc::Slice body(request);
  call->stream->WriteLast(grpc::ByteBuffer(&body, 1), grpc::WriteOptions(), nullptr);
  REQUIRE(state_->Await());
  state_->open.push_back(std::move(call));
}

}  // namespace strata::testing
