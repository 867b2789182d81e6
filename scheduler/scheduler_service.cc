#include "scheduler/scheduler_service.h"

#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_context.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/core/mutation.h"
#include "proto/runtime/transport/grpc_deadline.h"
#include "proto/runtime/transport/grpc_server.h"
#include "proto/runtime/transport/grpc_status.h"
#include "proto/runtime/transport/keepalive.h"
#include "proto/strata/control.grpc.pb.h"

namespace strata::scheduler {
namespace {

constexpr absl::Duration kDrain = absl::Seconds(2);

template <typename Reply>
grpc::Status Answer(absl::StatusOr<Reply> result, Reply* reply) {
  if (!result.ok()) return ToGrpc(result.status());
  *reply = *std::move(result);
  return grpc::Status::OK;
}

class Handlers final : public strata::Scheduler::Service {
 public:
  Handlers(SchedulerClient* scheduler, absl::Duration lease)
      : scheduler_(scheduler), lease_ms_(absl::StrCat(absl::ToInt64Milliseconds(lease))) {}

  grpc::Status Sync(grpc::ServerContext* context, const NodeReport* request,
                    NodeDirective* reply) override {
    return Answer(scheduler_->Sync(*request, Begin(context)), reply);
  }
  grpc::Status Submit(grpc::ServerContext* context, const SubmitRequest* request,
                      SubmitReply* reply) override {
    return Answer(scheduler_->Submit(*request, Begin(context)), reply);
  }
  grpc::Status GetJob(grpc::ServerContext* context, const JobRef* request,
                      JobStatus* reply) override {
    return Answer(scheduler_->GetJob(*request, Begin(context)), reply);
  }
  grpc::Status ListJobs(grpc::ServerContext* context, const ListJobsRequest*,
                        ListJobsReply* reply) override {
    return Answer(scheduler_->ListJobs(Begin(context)), reply);
  }
  grpc::Status CancelJob(grpc::ServerContext* context, const JobRef* request,
                         JobStatus* reply) override {
    return Answer(scheduler_->CancelJob(*request, Begin(context)), reply);
  }
  grpc::Status CreateCheckpoint(grpc::ServerContext* context,
                                const CreateCheckpointRequest* request,
                                CreateCheckpointReply* reply) override {
    return Answer(scheduler_->CreateCheckpoint(*request, Begin(context)), reply);
  }
  grpc::Status GetCluster(grpc::ServerContext* context, const GetClusterRequest*,
                          ClusterStatus* reply) override {
    return Answer(scheduler_->GetCluster(Begin(context)), reply);
  }
  grpc::Status GetShards(grpc::ServerContext* context, const JobRef* request,
                         JobShards* reply) override {
    return Answer(scheduler_->GetShards(*request, Begin(context)), reply);
  }
  grpc::Status GetEvents(grpc::ServerContext* context, const GetEventsRequest* request,
                         GetEventsReply* reply) override {
    return Answer(scheduler_->GetEvents(*request, Begin(context)), reply);
  }
  grpc::Status SettleQuarantine(grpc::ServerContext* context,
                                const SettleQuarantineRequest* request,
                                SettleQuarantineReply* reply) override {
    return Answer(scheduler_->SettleQuarantine(*request, Begin(context)), reply);
  }

 private:
  // Says the lease; returns what is left of the caller's deadline.
  absl::Duration Begin(grpc::ServerContext* context) {
    if (!STRATA_MUTATION("keepalive.lease_untold")) {
      context->AddInitialMetadata(kLeaseMetadata, lease_ms_);
    }
    return TimeLeft(context->raw_deadline());
  }

  SchedulerClient* const scheduler_;
  const std::string lease_ms_;
};

class SchedulerServiceImpl : public SchedulerService {
 public:
  explicit SchedulerServiceImpl(const SchedulerServiceOptions& options)
      : handlers_(options.scheduler, options.lease) {}

  ~SchedulerServiceImpl() override {
    if (started_.server == nullptr) return;
    started_.server->Shutdown(GrpcDeadline(kDrain));
    started_.server->Wait();
  }

  absl::Status Open(const SchedulerServiceOptions& options) {
    grpc::ServerBuilder builder;
    grpc::ResourceQuota quota("scheduler");
    quota.SetMaxThreads(options.max_threads);
    builder.SetResourceQuota(quota);
    builder.RegisterService(&handlers_);
    auto started = StartGrpcServer(builder, options.address, options.scope, options.lease);
    if (!started.ok()) return started.status();
    started_ = *std::move(started);
    return absl::OkStatus();
  }

  const std::string& address() const override { return started_.address; }

 private:
  Handlers handlers_;
  StartedServer started_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SchedulerService>> SchedulerService::Start(
    SchedulerServiceOptions options) {
  if (options.scheduler == nullptr) return absl::InvalidArgumentError("no scheduler given");
  auto service = std::make_unique<SchedulerServiceImpl>(options);
  if (absl::Status s = service->Open(options); !s.ok()) return s;
  return std::unique_ptr<SchedulerService>(std::move(service));
}

}  // namespace strata::scheduler
