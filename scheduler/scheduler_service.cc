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
#include "proto/runtime/credentials/credential_source.h"
#include "proto/runtime/transport/grpc_deadline.h"
#include "proto/runtime/transport/grpc_server.h"
#include "proto/runtime/transport/grpc_status.h"
#include "proto/runtime/transport/keepalive.h"
#include "proto/strata/control.grpc.pb.h"

namespace strata::scheduler {
namespace {

constexpr absl::Duration kDrain = absl::Seconds(2);

// A node reports under the name and the role of its certificate alone. PERMISSION_DENIED.
absl::Status CheckNode(const Caller& caller, const NodeReport& report) {
  if (!caller.asked) return absl::OkStatus();
  const NodeRole role = caller.role == Role::kServer ? SERVER : WORKER;
  if ((report.name() == caller.name && report.role() == role) ||
      STRATA_MUTATION("rpc_policy.node_takes_another_name")) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(absl::StrCat(
      RoleName(caller.role), "/", caller.name, " reports as ", NodeRole_Name(report.role()), " \"",
      report.name(), "\", and its certificate is of neither; start it with --name ", caller.name,
      ", or issue a certificate for that name: strata certs issue ",
      report.role() == SERVER ? "server" : "worker", " ", report.name()));
}

class Handlers final : public strata::Scheduler::Service {
 public:
  explicit Handlers(const SchedulerServiceOptions& options)
      : scheduler_(options.scheduler),
        owners_(options.owners),
        tls_(options.tls),
        lease_ms_(absl::StrCat(absl::ToInt64Milliseconds(options.lease))) {}

  grpc::Status Sync(grpc::ServerContext* context, const NodeReport* request,
                    NodeDirective* reply) override {
    return Serve(context, Rpc::kSync, reply, [&](const Caller& caller, absl::Duration left) {
      const absl::Status own = CheckNode(caller, *request);
      return own.ok() ? scheduler_->Sync(*request, left) : absl::StatusOr<NodeDirective>(own);
    });
  }
  grpc::Status Submit(grpc::ServerContext* context, const SubmitRequest* request,
                      SubmitReply* reply) override {
    return Serve(context, Rpc::kSubmit, reply, [&](const Caller& caller, absl::Duration left) {
      return caller.asked ? owners_->SubmitAs(caller, *request, left)
                          : scheduler_->Submit(*request, left);
    });
  }
  grpc::Status GetJob(grpc::ServerContext* context, const JobRef* request,
                      JobStatus* reply) override {
    return Serve(context, Rpc::kGetJob, reply, [&](const Caller&, absl::Duration left) {
      return scheduler_->GetJob(*request, left);
    });
  }
  grpc::Status ListJobs(grpc::ServerContext* context, const ListJobsRequest*,
                        ListJobsReply* reply) override {
    return Serve(context, Rpc::kListJobs, reply,
                 [&](const Caller&, absl::Duration left) { return scheduler_->ListJobs(left); });
  }
  grpc::Status CancelJob(grpc::ServerContext* context, const JobRef* request,
                         JobStatus* reply) override {
    return Serve(context, Rpc::kCancelJob, reply,
                 [&](const Caller& caller, absl::Duration left) -> absl::StatusOr<JobStatus> {
                   const auto job = Own(caller, *request);
                   return job.ok() ? scheduler_->CancelJob(*job, left) : job.status();
                 });
  }
  grpc::Status CreateCheckpoint(grpc::ServerContext* context,
                                const CreateCheckpointRequest* request,
                                CreateCheckpointReply* reply) override {
    return Serve(
        context, Rpc::kCreateCheckpoint, reply,
        [&](const Caller& caller, absl::Duration left) -> absl::StatusOr<CreateCheckpointReply> {
          const auto job = Own(caller, request->job());
          if (!job.ok()) return job.status();
          CreateCheckpointRequest own = *request;
          *own.mutable_job() = *job;
          return scheduler_->CreateCheckpoint(own, left);
        });
  }
  grpc::Status GetCluster(grpc::ServerContext* context, const GetClusterRequest*,
                          ClusterStatus* reply) override {
    return Serve(context, Rpc::kGetCluster, reply, [&](const Caller&, absl::Duration left) {
      absl::StatusOr<ClusterStatus> cluster = scheduler_->GetCluster(left);
      if (cluster.ok()) SayWhoIsAsked(*cluster);
      return cluster;
    });
  }
  grpc::Status GetShards(grpc::ServerContext* context, const JobRef* request,
                         JobShards* reply) override {
    return Serve(context, Rpc::kGetShards, reply, [&](const Caller&, absl::Duration left) {
      return scheduler_->GetShards(*request, left);
    });
  }
  grpc::Status GetEvents(grpc::ServerContext* context, const GetEventsRequest* request,
                         GetEventsReply* reply) override {
    return Serve(context, Rpc::kGetEvents, reply, [&](const Caller&, absl::Duration left) {
      return scheduler_->GetEvents(*request, left);
    });
  }
  grpc::Status SettleQuarantine(grpc::ServerContext* context,
                                const SettleQuarantineRequest* request,
                                SettleQuarantineReply* reply) override {
    return Serve(context, Rpc::kSettleQuarantine, reply,
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

  // Says the lease; asks who calls, and whether he may; gives `call` that, and what is left of the
  // deadline.
  template <typename Reply, typename Call>
  grpc::Status Serve(grpc::ServerContext* context, Rpc rpc, Reply* reply, const Call& call) {
    if (!STRATA_MUTATION("keepalive.lease_untold")) {
      context->AddInitialMetadata(kLeaseMetadata, lease_ms_);
    }
    const auto caller = AdmitCall(tls_, *context, rpc);
    if (!caller.ok()) return ToGrpc(Refusal(rpc, caller.status()));
    absl::StatusOr<Reply> result = call(*caller, TimeLeft(context->raw_deadline()));
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
  const std::string lease_ms_;
};

class SchedulerServiceImpl : public SchedulerService {
 public:
  explicit SchedulerServiceImpl(const SchedulerServiceOptions& options) : handlers_(options) {}

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
    auto started =
        StartGrpcServer(builder, options.address, options.scope,
                        options.tls == nullptr ? nullptr : options.tls->ForPort(), options.lease);
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
  if (options.tls != nullptr && options.owners == nullptr) {
    return absl::InvalidArgumentError("no owners of jobs given");
  }
  auto service = std::make_unique<SchedulerServiceImpl>(options);
  if (absl::Status s = service->Open(options); !s.ok()) return s;
  return std::unique_ptr<SchedulerService>(std::move(service));
}

}  // namespace strata::scheduler
