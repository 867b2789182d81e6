#include "tests/proto/runtime/transport/raw_calls.h"

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include <optional>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "proto/runtime/transport/grpc_deadline.h"
#include "proto/runtime/transport/grpc_server.h"
#include "proto/runtime/transport/grpc_status.h"

namespace strata::testing {
namespace {

// OK: a message has come.
grpc::Status FirstMessage(grpc::GenericStub& stub, grpc::ClientContext& context,
                          const RawCall& call, const grpc::ByteBuffer& request) {
  grpc::CompletionQueue queue;
  const auto await = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto stream = stub.PrepareCall(&context, call.path, &queue);
  grpc::ByteBuffer response;
  grpc::Status status;
  stream->StartCall(nullptr);
  bool read = await();
  if (read) {
    stream->WriteLast(request, grpc::WriteOptions(), nullptr);
    await();
    stream->Read(&response, nullptr);
    read = await();
  }
  if (read) context.TryCancel();
  stream->Finish(&status, nullptr);
  await();
  return read ? grpc::Status::OK : status;
}

}  // namespace

absl::Status CallRaw(const std::shared_ptr<ProcessTls>& tls, const RawCall& call) {
  grpc::GenericStub stub(grpc::CreateCustomChannel(call.address,
                                                   tls == nullptr
                                                       ? grpc::InsecureChannelCredentials()
                                                       : tls->ChannelTo(call.listens, std::nullopt),
                                                   GrpcChannelArguments()));
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(absl::Seconds(60)));
  if (!call.session.empty()) context.AddMetadata(kSessionMetadata, call.session);
  const grpc::Slice body(call.body);
  const grpc::ByteBuffer request(&body, 1);
  if (call.streams) return FromGrpc(FirstMessage(stub, context, call, request));
  grpc::ByteBuffer response;
  grpc::Status status;
  absl::Notification done;
  stub.UnaryCall(&context, call.path, grpc::StubOptions(), &request, &response,
                 [&](grpc::Status s) {
                   status = std::move(s);
                   done.Notify();
                 });
  done.WaitForNotification();
  return FromGrpc(status);
}

}  // namespace strata::testing
