#include "proto/runtime/transport/grpc_listener.h"

#include <grpcpp/impl/codegen/service_type.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_unary_call.h>

#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/runtime/transport/grpc_buffers.h"
#include "proto/runtime/transport/grpc_server.h"
#include "proto/runtime/transport/grpc_status.h"
#include "proto/wire/message_limits.h"

namespace strata::grpc_internal {
namespace {

// The data plane's methods, delivered as bytes: what protoc generates for raw asynchronous methods,
// without the generated service.
class DataService : public grpc::Service {
 public:
  DataService() {
    for (int i = 0; i < kDataMethods; ++i) {
      AddMethod(new grpc::internal::RpcServiceMethod(
          kMethodPaths[i], grpc::internal::RpcMethod::NORMAL_RPC, nullptr));
      MarkMethodRaw(i);
    }
  }
  using grpc::Service::RequestAsyncUnary;
};

using Responder = grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>;

// How long answers that are already given may take to leave when a listener closes.
constexpr absl::Duration kCloseGrace = absl::Seconds(2);

class ServerCall;

// The right to answer a call. Outlives the call, since a handler may keep its reply for ever.
class ReplySlot {
 public:
  explicit ReplySlot(ServerCall* call) : call_(call) {}
  void Answer(absl::StatusOr<Buffer> result);

 private:
  absl::Mutex mu_;
  ServerCall* call_ ABSL_GUARDED_BY(mu_);  // null once answered
};

using SlotPtr = std::shared_ptr<ReplySlot>;

// Calls that have a handler but no answer yet.
class OpenCalls {
 public:
  explicit OpenCalls(size_t limit) : limit_(limit) {}

  // Error: what the call is to be answered with instead.
  absl::Status Add(const SlotPtr& slot) {
    absl::MutexLock lock(&mu_);
    if (closed_) return Closed();
    if (slots_.size() >= limit_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the server holds ", limit_, " calls, its limit"));
    }
    slots_.insert(slot);
    return absl::OkStatus();
  }
  void Remove(const SlotPtr& slot) {
    absl::MutexLock lock(&mu_);
    slots_.erase(slot);
  }
  // Answers all; none is added afterwards, and no handler's answer is sent.
  void Close() {
    absl::flat_hash_set<SlotPtr> left;
    {
      absl::MutexLock lock(&mu_);
      closed_ = true;
      left.swap(slots_);
    }
    for (const SlotPtr& slot : left) slot->Answer(Closed());
  }

 private:
  static absl::Status Closed() { return absl::UnavailableError("the server is closing"); }

  const size_t limit_;
  absl::Mutex mu_;
  absl::flat_hash_set<SlotPtr> slots_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

// What calls need of their listener, which outlives them.
struct Shared {
  Shared(const GrpcTransportOptions& options, DataHandler* h)
      : open(std::make_shared<OpenCalls>(options.max_calls_in_flight)),
        limits(std::make_shared<CallerLimits>(options.caller_limits)),
        handler(h),
        tls(options.tls) {}
  DataService service;
  const std::shared_ptr<OpenCalls> open;       // late replies of handlers hold it too
  const std::shared_ptr<CallerLimits> limits;  // and so do they
  DataHandler* const handler;
  const std::shared_ptr<ProcessTls> tls;
  // Read-locked where a call puts something new on its queue, because nothing may be put on one
  // that is shut down.
  absl::Mutex queues_mu;
  bool queues_closed ABSL_GUARDED_BY(queues_mu) = false;
};

// One call of one method: waits for a client, runs the handler, sends the answer, deletes itself.
// All but Answer on the thread of its completion queue.
class ServerCall {
 public:
  ServerCall(Shared* shared, int method, grpc::ServerCompletionQueue* queue)
      : shared_(shared), method_(method), queue_(queue), responder_(&context_) {
    shared_->service.RequestAsyncUnary(method, &context_, &request_, &responder_, queue, queue,
                                       this);
  }

  // The queue returned this call.
  void Proceed(bool ok) {
    if (arrived_ || !ok) {
      delete this;
      return;
    }
    arrived_ = true;
    const auto slot = std::make_shared<ReplySlot>(this);
    if (!Admit(slot)) return;
    absl::StatusOr<Buffer> request = FromByteBuffer(request_);
    request_.Clear();
    const auto reply = [open = shared_->open, slot](absl::StatusOr<Buffer> result) {
      // In this order: what is not among the open calls is never answered.
      slot->Answer(std::move(result));
      open->Remove(slot);
    };
    if (!request.ok()) return reply(request.status());
    const auto method = static_cast<DataMethod>(method_);
    if (shared_->tls == nullptr) {
      return shared_->handler->Handle(Caller::Nobody(), method, *std::move(request), reply);
    }
    const auto caller = shared_->tls->Admit(context_, RpcOf(method));
    if (!caller.ok()) return reply(caller.status());
    auto admitted = shared_->limits->Begin(*caller, request->size());
    if (!admitted.ok()) return reply(admitted.status());
    admitted_ = *std::move(admitted);
    shared_->handler->Handle(*caller, method, *std::move(request), reply);
  }

  // Once; the call may be gone when it returns.
  void Answer(absl::StatusOr<Buffer> result) {
    if (result.ok() && result->size() > kMaxMessageBytes) {
      result = absl::ResourceExhaustedError(absl::StrCat(
          "reply of ", result->size(), " bytes, the limit of a message is ", kMaxMessageBytes));
    }
    // An error may come while the call is being admitted, from who closes the listener.
    if (result.ok() && admitted_ != nullptr) {
      if (absl::Status s = admitted_->Reply(result->size()); !s.ok()) result = s;
    }
    if (result.ok()) {
      responder_.Finish(ToByteBuffer(*std::move(result)), grpc::Status::OK, this);
    } else {
      if (absl::IsCancelled(result.status()) || absl::IsUnknown(result.status()))
        context_.AddTrailingMetadata(kHandlerMark, "1");
      responder_.FinishWithError(ToGrpc(result.status()), this);
    }
  }

 private:
  // Makes room for the next call, and takes this one or answers it with an error.
  bool Admit(const SlotPtr& slot) {
    absl::ReaderMutexLock lock(&shared_->queues_mu);
    if (shared_->queues_closed) {
      delete this;  // the server's shutdown has cancelled it
      return false;
    }
    new ServerCall(shared_, method_, queue_);
    const absl::Status admitted = shared_->open->Add(slot);
    if (!admitted.ok()) slot->Answer(admitted);
    return admitted.ok();
  }

  Shared* const shared_;
  const int method_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext context_;
  grpc::ByteBuffer request_;
  Responder responder_;
  // Until the answer is written: what a client does not read takes its place there. Null: the
  // caller is not limited.
  std::shared_ptr<CallerLimits::Admitted> admitted_;
  bool arrived_ = false;
};

void ReplySlot::Answer(absl::StatusOr<Buffer> result) {
  // Under the lock, so that nothing is sent any more once OpenCalls::Close has been here.
  absl::MutexLock lock(&mu_);
  if (call_ != nullptr) std::exchange(call_, nullptr)->Answer(std::move(result));
}

class Listener : public DataListener {
 public:
  Listener(const GrpcTransportOptions& options, DataHandler* handler) : shared_(options, handler) {}

  absl::Status Start(const GrpcTransportOptions& options, const std::string& address) {
    grpc::ServerBuilder builder;
    builder.RegisterService(&shared_.service);
    for (grpc::Service* service : options.services) builder.RegisterService(service);
    for (size_t i = 0; i < options.server_threads; ++i) {
      queues_.push_back(builder.AddCompletionQueue());
    }
    auto started = GrpcServer::Start(builder, {.address = address,
                                               .scope = options.scope,
                                               .tls = options.tls,
                                               .limits = options.port_limits});
    if (!started.ok()) return started.status();
    server_ = *std::move(started);
    for (const auto& queue : queues_) {
      for (int method = 0; method < kDataMethods; ++method) {
        for (int i = 0; i < kWaiting; ++i) new ServerCall(&shared_, method, queue.get());
      }
      threads_.emplace_back([q = queue.get()] { Run(q); });
    }
    return absl::OkStatus();
  }

  // 1. Answer what is open; later answers go nowhere. 2. Let these answers leave, take no new call.
  // 3. Drain the queues; when their threads end, no handler call runs.
  ~Listener() override {
    if (server_ != nullptr) server_->SayClosing();
    shared_.open->Close();
    if (server_ != nullptr) server_->Close(kCloseGrace);
    {
      absl::MutexLock lock(&shared_.queues_mu);
      shared_.queues_closed = true;
    }
    for (const auto& queue : queues_) queue->Shutdown();
    for (std::thread& t : threads_) t.join();
    if (!threads_.empty()) return;
    for (const auto& queue : queues_) Run(queue.get());  // never started
  }

  std::string address() const override { return server_->address(); }

 private:
  // Calls per queue and method that wait for a client: what can arrive at once without a detour
  // through gRPC's list of unclaimed calls.
  static constexpr int kWaiting = 8;

  static void Run(grpc::ServerCompletionQueue* queue) {
    void* tag = nullptr;
    bool ok = false;
    while (queue->Next(&tag, &ok)) static_cast<ServerCall*>(tag)->Proceed(ok);
  }

  Shared shared_;
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues_;
  std::unique_ptr<GrpcServer> server_;
  std::vector<std::thread> threads_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DataListener>> StartListener(const GrpcTransportOptions& options,
                                                            const std::string& address,
                                                            DataHandler* handler) {
  auto listener = std::make_unique<Listener>(options, handler);
  const absl::Status status = listener->Start(options, address);
  if (!status.ok()) return status;
  return listener;
}

}  // namespace strata::grpc_internal
