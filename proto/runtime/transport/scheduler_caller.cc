#include "proto/runtime/transport/scheduler_caller.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/core/mutation.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/rpc_policy.h"

namespace strata {
namespace {

class SchedulerCaller : public SchedulerClient {
 public:
  SchedulerCaller(Caller caller, SchedulerClient* scheduler)
      : caller_(std::move(caller)), scheduler_(scheduler) {}

  absl::StatusOr<NodeDirective> Sync(const NodeReport& report, absl::Duration timeout) override {
    if (absl::Status s = Check(Rpc::kSync); !s.ok()) return s;
    if (absl::Status s = CheckReporter(caller_, report); !s.ok()) return s;
    return scheduler_->Sync(report, timeout);
  }
  absl::StatusOr<SubmitReply> Submit(const SubmitRequest& request,
                                     absl::Duration timeout) override {
    if (absl::Status s = Check(Rpc::kSubmit); !s.ok()) return s;
    return scheduler_->Submit(request, timeout);
  }
  absl::StatusOr<JobStatus> GetJob(const JobRef& ref, absl::Duration timeout) override {
    if (absl::Status s = Check(Rpc::kGetJob); !s.ok()) return s;
    return scheduler_->GetJob(ref, timeout);
  }
  absl::StatusOr<ListJobsReply> ListJobs(absl::Duration timeout) override {
    if (absl::Status s = Check(Rpc::kListJobs); !s.ok()) return s;
    return scheduler_->ListJobs(timeout);
  }
  absl::StatusOr<JobStatus> CancelJob(const JobRef& ref, absl::Duration timeout) override {
    if (absl::Status s = Check(Rpc::kCancelJob); !s.ok()) return s;
    return scheduler_->CancelJob(ref, timeout);
  }
  absl::StatusOr<CreateCheckpointReply> CreateCheckpoint(const CreateCheckpointRequest& request,
                                                         absl::Duration timeout) override {
    if (absl::Status s = Check(Rpc::kCreateCheckpoint); !s.ok()) return s;
    return scheduler_->CreateCheckpoint(request, timeout);
  }
  absl::StatusOr<ClusterStatus> GetCluster(absl::Duration timeout) override {
    if (absl::Status s = Check(Rpc::kGetCluster); !s.ok()) return s;
    return scheduler_->GetCluster(timeout);
  }
  absl::StatusOr<JobShards> GetShards(const JobRef& ref, absl::Duration timeout) override {
    if (absl::Status s = Check(Rpc::kGetShards); !s.ok()) return s;
    return scheduler_->GetShards(ref, timeout);
  }
  absl::StatusOr<GetEventsReply> GetEvents(const GetEventsRequest& request,
                                           absl::Duration timeout) override {
    if (absl::Status s = Check(Rpc::kGetEvents); !s.ok()) return s;
    return scheduler_->GetEvents(request, timeout);
  }
  absl::StatusOr<SettleQuarantineReply> SettleQuarantine(const SettleQuarantineRequest& request,
                                                         absl::Duration timeout) override {
    if (absl::Status s = Check(Rpc::kSettleQuarantine); !s.ok()) return s;
    return scheduler_->SettleQuarantine(request, timeout);
  }

 private:
  absl::Status Check(Rpc rpc) const { return CheckRole(caller_, rpc); }

  const Caller caller_;
  SchedulerClient* const scheduler_;
};

}  // namespace

absl::Status CheckReporter(const Caller& caller, const NodeReport& report) {
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

std::unique_ptr<SchedulerClient> CallSchedulerAs(const Caller& caller, SchedulerClient* scheduler) {
  return std::make_unique<SchedulerCaller>(caller, scheduler);
}

}  // namespace strata
