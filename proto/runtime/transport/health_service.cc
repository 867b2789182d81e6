#include "proto/runtime/transport/health_service.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "proto/core/mutex.h"
#include "proto/runtime/credentials/rpc_policy.h"
#include "proto/runtime/transport/grpc_status.h"
#include "proto/strata/health.grpc.pb.h"
#include "proto/strata/health.pb.h"

namespace strata {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

grpc::Status Closing() {
  return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the process is closing");
}

class Watch;

// Who watches now.
class Watches {
 public:
  // False: the process is closing.
  bool Add(Watch* watch) {
    MutexLock lock(&mu_);
    if (closed_) return false;
    open_.insert(watch);
    return true;
  }
  void Remove(Watch* watch) {
    MutexLock lock(&mu_);
    open_.erase(watch);
  }
  void Close();
  bool closed() const {
    MutexLock lock(&mu_);
    return closed_;
  }

 private:
  mutable Mutex mu_;
  std::set<Watch*> open_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

// One call; deletes itself when gRPC is done with it.
class Watch : public grpc::ServerWriteReactor<HealthCheckResponse> {
 public:
  // `refused`: why the call is not answered.
  Watch(Watches* watches, const grpc::Status& refused, bool known) : watches_(watches) {
    now_.set_status(known ? HealthCheckResponse::SERVING : HealthCheckResponse::SERVICE_UNKNOWN);
    const bool added = refused.ok() && watches_->Add(this);
    MutexLock lock(&mu_);
    if (finished_) return;  // it closed since
    if (!added) {
      finished_ = true;
      Finish(refused.ok() ? Closing() : refused);
      return;
    }
    writing_ = true;
    StartWrite(&now_);
  }

  void End() {
    MutexLock lock(&mu_);
    closing_ = true;
    if (!writing_) FinishNow();
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mu_);
    writing_ = false;
    if (!ok || closing_ || cancelled_) FinishNow();
  }
  void OnCancel() override {
    MutexLock lock(&mu_);
    cancelled_ = true;
    if (!writing_) FinishNow();
  }
  void OnDone() override {
    watches_->Remove(this);
    delete this;
  }

 private:
  void FinishNow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (std::exchange(finished_, true)) return;
    if (!closing_ || cancelled_) return Finish(grpc::Status(grpc::StatusCode::CANCELLED, ""));
    now_.set_status(HealthCheckResponse::NOT_SERVING);
    StartWriteAndFinish(&now_, grpc::WriteOptions(), Closing());
  }

  Watches* const watches_;
  Mutex mu_;
  // Not changed while it is written.
  HealthCheckResponse now_;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
};

void Watches::Close() {
  MutexLock lock(&mu_);
  closed_ = true;
  for (Watch* const watch : open_) watch->End();
}

class HealthServiceImpl : public HealthService {
 public:
  explicit HealthServiceImpl(std::shared_ptr<ProcessTls> tls) : handlers_(std::move(tls)) {}

  grpc::Service* service() override { return &handlers_; }
  void Close() override { handlers_.watches.Close(); }

 private:
  struct Handlers final : public grpc::health::v1::Health::CallbackService {
    explicit Handlers(std::shared_ptr<ProcessTls> of) : tls(std::move(of)) {}

    grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                    const HealthCheckRequest* request,
                                    HealthCheckResponse* response) override {
      grpc::Status status = ToGrpc(AdmitCall(tls, *context, Rpc::kCheckHealth).status());
      if (status.ok() && !request->service().empty()) {
        status =
            grpc::Status(grpc::StatusCode::NOT_FOUND,
                         "no service \"" + request->service().substr(0, 100) +
                             "\" is known here; ask for the process as a whole: an empty name");
      }
      response->set_status(watches.closed() ? HealthCheckResponse::NOT_SERVING
                                            : HealthCheckResponse::SERVING);
      auto* const reactor = context->DefaultReactor();
      reactor->Finish(status);
      return reactor;
    }

    grpc::ServerWriteReactor<HealthCheckResponse>* Watch(
        grpc::CallbackServerContext* context, const HealthCheckRequest* request) override {
      const grpc::Status refused = ToGrpc(AdmitCall(tls, *context, Rpc::kWatchHealth).status());
      return new strata::Watch(&watches, refused, request->service().empty());
    }

    const std::shared_ptr<ProcessTls> tls;
    Watches watches;
  };

  Handlers handlers_;
};

}  // namespace

std::unique_ptr<HealthService> HealthService::Make(std::shared_ptr<ProcessTls> tls) {
  return std::make_unique<HealthServiceImpl>(std::move(tls));
}

}  // namespace strata
