#include "scheduler/scheduler_service.h"

#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/interceptor.h>
#include <grpcpp/support/server_interceptor.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/core/mutation.h"
#include "proto/core/mutex.h"
#include "proto/runtime/credentials/credential_source.h"
#include "proto/runtime/transport/caller_limits.h"
#include "proto/runtime/transport/grpc_deadline.h"
#include "proto/runtime/transport/grpc_server.h"
#include "proto/runtime/transport/grpc_status.h"
#include "proto/runtime/transport/keepalive.h"
#include "proto/runtime/transport/scheduler_caller.h"
#include "proto/strata/control.grpc.pb.h"

namespace strata::scheduler {
namespace {

constexpr absl::Duration kDrain = absl::Seconds(2);

// What stays until a call has ended, its reply written: gRPC says that to interceptors alone.
class CallsUnderWay : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  // `held` goes with the call.
  void Keep(const grpc::ServerContextBase* call, std::shared_ptr<CallerLimits::Admitted> held) {
    MutexLock lock(&mu_);
    const auto found = calls_.find(call);
    if (found != calls_.end()) found->second->held = std::move(held);
  }

 private:
  // One call; gRPC deletes it at its end.
  class UnderWay : public grpc::experimental::Interceptor {
   public:
    UnderWay(CallsUnderWay* all, const grpc::ServerContextBase* call) : all_(all), call_(call) {}
    ~UnderWay() override { all_->Remove(call_); }
    void Intercept(grpc::experimental::InterceptorBatchMethods* batch) override {
      batch->Proceed();
    }
    std::shared_ptr<CallerLimits::Admitted> held;

   private:
    CallsUnderWay* const all_;
    const grpc::ServerContextBase* const call_;
  };

  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    auto* const call = new UnderWay(this, info->server_context());
    MutexLock lock(&mu_);
    calls_[info->server_context()] = call;
    return call;
  }
  void Remove(const grpc::ServerContextBase* call) {
    MutexLock lock(&mu_);
    calls_.erase(call);
  }

  Mutex mu_;
  std::map<const grpc::ServerContextBase*, UnderWay*> calls_ ABSL_GUARDED_BY(mu_);
};

class Handlers final : public strata::Scheduler::Service {
 public:
  // `calls` lives as long as the server.
  Handlers(const SchedulerServiceOptions& options, CallsUnderWay* calls)
      : scheduler_(options.scheduler),
        owners_(options.owners),
        tls_(options.tls),
        limits_(std::make_shared<CallerLimits>(options.caller_limits)),
        calls_(calls),
        lease_ms_(absl::StrCat(absl::ToInt64Milliseconds(options.lease))),
        own_concerns_(options.own_concerns) {}

  grpc::Status Sync(grpc::ServerContext* context, const NodeReport* request,
                    NodeDirective* reply) override {
    return Serve(
        context, Rpc::kSync, *request, reply, [&](const Caller& caller, absl::Duration left) {
          const absl::Status own = CheckReporter(caller, *request);
          return own.ok() ? scheduler_->Sync(*request, left) : absl::StatusOr<NodeDirective>(own);
        });
  }
  grpc::Status Submit(grpc::ServerContext* context, const SubmitRequest* request,
                      SubmitReply* reply) override {
    return Serve(context, Rpc::kSubmit, *request, reply,
                 [&](const Caller& caller, absl::Duration left) {
                   return caller.asked ? owners_->SubmitAs(caller, *request, left)
                                       : scheduler_->Submit(*request, left);
                 });
  }
  grpc::Status GetJob(grpc::ServerContext* context, const JobRef* request,
                      JobStatus* reply) override {
    return Serve(context, Rpc::kGetJob, *request, reply, [&](const Caller&, absl::Duration left) {
      absl::StatusOr<JobStatus> job = scheduler_->GetJob(*request, left);
      if (job.ok() && own_concerns_ != nullptr) own_concerns_->AddTo(*job);
      return job;
    });
  }
  grpc::Status ListJobs(grpc::ServerContext* context, const ListJobsRequest* request,
                        ListJobsReply* reply) override {
    return Serve(context, Rpc::kListJobs, *request, reply,
                 [&](const Caller&, absl::Duration left) { return scheduler_->ListJobs(left); });
  }
  grpc::Status CancelJob(grpc::ServerContext* context, const JobRef* request,
                         JobStatus* reply) override {
    return Serve(context, Rpc::kCancelJob, *request, reply,
                 [&](const Caller& caller, absl::Duration left) -> absl::StatusOr<JobStatus> {
                   const auto job = Own(caller, *request);
                   return job.ok() ? scheduler_->CancelJob(*job, left) : job.status();
                 });
  }
  grpc::Status CreateCheckpoint(grpc::ServerContext* context,
                                const CreateCheckpointRequest* request,
                                CreateCheckpointReply* reply) override {
    return Serve(
        context, Rpc::kCreateCheckpoint, *request, reply,
        [&](const Caller& caller, absl::Duration left) -> absl::StatusOr<CreateCheckpointReply> {
          const auto job = Own(caller, request->job());
          if (!job.ok()) return job.status();
          CreateCheckpointRequest own = *request;
          *own.mutable_job() = *job;
          return scheduler_->CreateCheckpoint(own, left);
        });
  }
  grpc::Status GetCluster(grpc::ServerContext* context, const GetClusterRequest* request,
                          ClusterStatus* reply) override {
    return Serve(context, Rpc::kGetCluster, *request, reply,
                 [&](const Caller&, absl::Duration left) {
                   absl::StatusOr<ClusterStatus> cluster = scheduler_->GetCluster(left);
                   if (cluster.ok()) SayWhoIsAsked(*cluster);
                   return cluster;
                 });
  }
  grpc::Status GetShards(grpc::ServerContext* context, const JobRef* request,
                         JobShards* reply) override {
    return Serve(
        context, Rpc::kGetShards, *request, reply,
        [&](const Caller&, absl::Duration left) { return scheduler_->GetShards(*request, left); });
  }
  grpc::Status GetEvents(grpc::ServerContext* context, const GetEventsRequest* request,
                         GetEventsReply* reply) override {
    return Serve(
        context, Rpc::kGetEvents, *request, reply,
        [&](const Caller&, absl::Duration left) { return scheduler_->GetEvents(*request, left); });
  }
  grpc::Status SettleQuarantine(grpc::ServerContext* context,
                                const SettleQuarantineRequest* request,
                                SettleQuarantineReply* reply) override {
    return Serve(context, Rpc::kSettleQuarantine, *request, reply,
                 [&](const Caller& caller, absl::Duration left) {
                   return caller.asked ? owners_->SettleQuarantineAs(caller, *request, left)
                                       : scheduler_->SettleQuarantine(*request, left);
                 });
  }

 private:
  void SayWhoIsAsked(ClusterStatus& cluster) const {
    cluster.set_insecure(tls_ == nullptr);
    if (tls_ == nullptr) return;
    const auto mine = tls_->source()->Current();
    cluster.set_certificate_not_after_unix_ms(
        absl::ToUnixMillis(mine->certificate.facts.valid.until));
  }

  // Says the lease; asks who calls, whether he may and whether it is too much; gives `call` that,
  // and what is left of the deadline. What the call takes of its caller's limits it takes until its
  // reply is written.
  template <typename Request, typename Reply, typename Call>
  grpc::Status Serve(grpc::ServerContext* context, Rpc rpc, const Request& request, Reply* reply,
                     const Call& call) {
    if (!STRATA_MUTATION("keepalive.lease_untold")) {
      context->AddInitialMetadata(kLeaseMetadata, lease_ms_);
    }
    const auto caller = AdmitCall(tls_, *context, rpc);
    if (!caller.ok()) return ToGrpc(Refusal(rpc, caller.status()));
    const auto admitted = limits_->Begin(*caller, request.ByteSizeLong());
    if (!admitted.ok()) return ToGrpc(admitted.status());
    if (*admitted != nullptr) calls_->Keep(context, *admitted);
    absl::StatusOr<Reply> result = call(*caller, TimeLeft(context->raw_deadline()));
    if (result.ok() && *admitted != nullptr) {
      if (absl::Status s = (*admitted)->Reply(result->ByteSizeLong()); !s.ok()) result = s;
    }
    if (!result.ok()) return ToGrpc(result.status());
    *reply = *std::move(result);
    return grpc::Status::OK;
  }

  // The job that is meant, by number, if the caller may decide about it.
  absl::StatusOr<JobRef> Own(const Caller& caller, const JobRef& ref) {
    if (!caller.asked) return ref;
    const auto job = owners_->OwnJob(caller, ref);
    if (!job.ok()) return job.status();
    JobRef own;
    own.set_job(*job);
    return own;
  }

  // To a node UNAUTHENTICATED says that its session is over, and it would stop its jobs: one whose
  // certificate is no good goes on, as while the scheduler is away, until it has a good one or its
  // lease lapses.
  static absl::Status Refusal(Rpc rpc, const absl::Status& why) {
    if (rpc != Rpc::kSync || !absl::IsUnauthenticated(why)) return why;
    return absl::PermissionDeniedError(why.message());
  }

  SchedulerClient* const scheduler_;
  JobOwners* const owners_;  // null: nobody is asked
  const std::shared_ptr<ProcessTls> tls_;
  const std::shared_ptr<CallerLimits> limits_;
  CallsUnderWay* const calls_;
  const std::string lease_ms_;
  const OwnConcerns* const own_concerns_;  // null: nothing is told of those
};

class SchedulerServiceImpl : public SchedulerService {
 public:
  explicit SchedulerServiceImpl(const SchedulerServiceOptions& options)
      : calls_(std::make_unique<CallsUnderWay>()), handlers_(options, calls_.get()) {}

  ~SchedulerServiceImpl() override {
    if (server_ != nullptr) server_->Close(kDrain);
  }

  absl::Status Open(const SchedulerServiceOptions& options) {
    grpc::ServerBuilder builder;
    grpc::ResourceQuota quota("scheduler");
    quota.SetMaxThreads(options.max_threads);
    builder.SetResourceQuota(quota);
    builder.RegisterService(&handlers_);
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> factories;
    factories.push_back(std::move(calls_));
    builder.experimental().SetInterceptorCreators(std::move(factories));
    auto started = GrpcServer::Start(builder, {.address = options.address,
                                               .scope = options.scope,
                                               .tls = options.tls,
                                               .limits = options.port_limits,
                                               .lease = options.lease});
    if (!started.ok()) return started.status();
    server_ = *std::move(started);
    return absl::OkStatus();
  }

  const std::string& address() const override { return server_->address(); }

 private:
  std::unique_ptr<CallsUnderWay> calls_;  // the server's, once there is one
  Handlers handlers_;
  std::unique_ptr<GrpcServer> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SchedulerService>> SchedulerService::Start(
    SchedulerServiceOptions options) {
  if (options.scheduler == nullptr) return absl::InvalidArgumentError("no scheduler given");
  if (options.tls != nullptr && options.owners == nullptr) {
    return absl::InvalidArgumentError("no owners of jobs given");
  }
  auto service = std::make_unique<SchedulerServiceImpl>(options);
  if (absl::Status s = service->Open(options); !s.ok()) return s;
  return std::unique_ptr<SchedulerService>(std::move(service));
}

}  // namespace strata::scheduler
