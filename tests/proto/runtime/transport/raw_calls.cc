#include "tests/proto/runtime/transport/raw_calls.h"

#include <grpcpp/client_context.h>
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
