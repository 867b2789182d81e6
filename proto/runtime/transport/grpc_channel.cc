#include "proto/runtime/transport/grpc_channel.h"

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/async_unary_call.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/runtime/transport/grpc_buffers.h"
#include "proto/runtime/transport/grpc_deadline.h"
#include "proto/runtime/transport/grpc_server.h"
#include "proto/runtime/transport/grpc_status.h"
#include "proto/wire/device_values.h"
#include "proto/wire/message_limits.h"

namespace strata::grpc_internal {
namespace {

// A connection, and whom it was made to.
struct Link {
  Link(std::shared_ptr<MetPeer> peer, std::shared_ptr<grpc::Channel> channel)
      : met(std::move(peer)), stub(std::move(channel)) {}

  const std::shared_ptr<MetPeer> met;
  grpc::GenericStub stub;
};

struct ClientCall {
  std::shared_ptr<Link> link;
  std::shared_ptr<ProcessTls> tls;
  grpc::ClientContext context;
  grpc::ByteBuffer reply;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader;
  DataReply done;
};

// The part of a queue that its thread shares, so that a `done` callback may drop the last channel.
class Loop : public std::enable_shared_from_this<Loop> {
 public:
  void Start() {
    thread_ = std::thread([self = shared_from_this()] { self->Run(); });
  }

  // Call once; no call may be started afterwards.
  void Stop() {
    {
      absl::MutexLock lock(&mu_);
      for (ClientCall* call : calls_) call->context.TryCancel();
    }
    queue_.Shutdown();
    if (thread_.get_id() == std::this_thread::get_id()) {
      thread_.detach();
    } else {
      thread_.join();
    }
  }

  grpc::CompletionQueue* queue() { return &queue_; }
  void Add(ClientCall* call) {
    absl::MutexLock lock(&mu_);
    calls_.insert(call);
  }

 private:
  void Run() {
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) Finish(static_cast<ClientCall*>(tag));
  }

  void Finish(ClientCall* call) {
    const std::unique_ptr<ClientCall> owner(call);
    {
      absl::MutexLock lock(&mu_);
      calls_.erase(call);
    }
    // What somebody says whose certificate was revoked meanwhile is not believed.
    if (call->tls != nullptr) {
      if (absl::Status s = call->tls->CheckAnswered(call->context); !s.ok()) return call->done(s);
    }
    if (call->status.ok()) return call->done(FromByteBuffer(call->reply));
    // Of a connection that breaks gRPC says CANCELLED or UNKNOWN ("Stream removed") as well.
    const grpc::StatusCode code = call->status.error_code();
    if ((code == grpc::StatusCode::CANCELLED || code == grpc::StatusCode::UNKNOWN) &&
        call->context.GetServerTrailingMetadata().count(kHandlerMark) == 0) {
      return call->done(absl::UnavailableError("the connection was closed by one of its ends"));
    }
    call->done(FromGrpc(call->status));
  }

  grpc::CompletionQueue queue_;
  std::thread thread_;
  absl::Mutex mu_;
  absl::flat_hash_set<ClientCall*> calls_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

class ClientQueue {
 public:
  ClientQueue() : loop_(std::make_shared<Loop>()) { loop_->Start(); }
  ~ClientQueue() { loop_->Stop(); }
  Loop& loop() { return *loop_; }

 private:
  const std::shared_ptr<Loop> loop_;
};

namespace {

std::shared_ptr<Link> Open(const DataPeer& peer, const ChannelOptions& options) {
  grpc::ChannelArguments arguments = GrpcChannelArguments(options.lease);
  if (options.tls == nullptr) {
    return std::make_shared<Link>(
        nullptr,
        grpc::CreateCustomChannel(peer.address, grpc::InsecureChannelCredentials(), arguments));
  }
  arguments.SetSslTargetNameOverride(options.tls->HostOf(Role::kServer));
  auto met = std::make_shared<MetPeer>();
  return std::make_shared<Link>(
      met, grpc::CreateCustomChannel(
               peer.address, options.tls->ChannelTo(Role::kServer, peer.name, met), arguments));
}

class Channel : public DataChannel {
 public:
  Channel(std::shared_ptr<ClientQueue> queue, const DataPeer& peer, const Caller& caller,
          const ChannelOptions& options)
      : queue_(std::move(queue)),
        peer_(peer),
        options_(options),
        jobs_(options.tls == nullptr ? nullptr : caller.jobs),
        link_(Open(peer, options)) {}

  void Call(DataMethod method, Buffer request, absl::Duration timeout, DataReply done) override {
    CallInPieces(method, {std::move(request)}, timeout, std::move(done));
  }

  void CallInPieces(DataMethod method, std::vector<Buffer> request, absl::Duration timeout,
                    DataReply done) override {
    if (absl::Status s = Check(request); !s.ok()) return done(std::move(s));
    auto call = std::make_unique<ClientCall>();
    call->link = ToWhomCounts();
    call->tls = options_.tls;
    call->context.set_deadline(GrpcDeadline(timeout));
    call->done = std::move(done);
    if (jobs_ != nullptr) {
      if (std::string session = jobs_->Get(); !session.empty()) {
        call->context.AddMetadata(kSessionMetadata, session);
      }
    }
    Loop& loop = queue_->loop();
    call->reader =
        call->link->stub.PrepareUnaryCall(&call->context, kMethodPaths[static_cast<int>(method)],
                                          ToByteBuffer(request), loop.queue());
    call->reader->StartCall();
    ClientCall* const tag = call.release();  // Loop::Finish deletes it
    loop.Add(tag);
    tag->reader->Finish(&tag->reply, &tag->status, tag);
  }

 private:
  static absl::Status Check(const std::vector<Buffer>& request) {
    size_t bytes = 0;
    for (const Buffer& piece : request) {
      bytes += piece.size();
      if (piece.device_values() == nullptr) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("request with values on device \"", piece.device_values()->device,
                       "\": they cannot leave this process; send them in the message"));
    }
    if (bytes <= kMaxMessageBytes) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("request of ", bytes, " bytes, the limit of a message is ", kMaxMessageBytes));
  }

  // The connection, or another one where one of its ends counts no more, or has another
  // certificate: that one's handshake asks anew. Calls that are under way on the old one end with
  // it.
  std::shared_ptr<Link> ToWhomCounts() {
    MutexLock lock(&mu_);
    if (link_->met != nullptr && !options_.tls->CheckMet(*link_->met).ok()) {
      link_ = Open(peer_, options_);
    }
    return link_;
  }

  const std::shared_ptr<ClientQueue> queue_;
  const DataPeer peer_;
  const ChannelOptions options_;
  const std::shared_ptr<const HeldSession> jobs_;  // null: nothing goes with calls
  Mutex mu_;
  std::shared_ptr<Link> link_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::shared_ptr<ClientQueue> MakeClientQueue() { return std::make_shared<ClientQueue>(); }

std::shared_ptr<DataChannel> MakeChannel(std::shared_ptr<ClientQueue> queue, const DataPeer& peer,
                                         const Caller& caller, const ChannelOptions& options) {
  return std::make_shared<Channel>(std::move(queue), peer, caller, options);
}

}  // namespace strata::grpc_internal
