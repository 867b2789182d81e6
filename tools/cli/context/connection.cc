#include "tools/cli/context/connection.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/transport/grpc_scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"

namespace strata {
namespace {

// Passes every call on, and has errors say how the cluster was chosen.
class ChosenScheduler : public SchedulerClient {
 public:
  ChosenScheduler(ChosenCluster chosen, std::unique_ptr<SchedulerClient> client)
      : chosen_(std::move(chosen)), client_(std::move(client)) {}

  absl::StatusOr<NodeDirective> Sync(const NodeReport& report, absl::Duration timeout) override {
    return Told(client_->Sync(report, timeout));
  }
  absl::StatusOr<SubmitReply> Submit(const SubmitRequest& request,
                                     absl::Duration timeout) override {
    return Told(client_->Submit(request, timeout));
  }
  absl::StatusOr<JobStatus> GetJob(const JobRef& ref, absl::Duration timeout) override {
    return Told(client_->GetJob(ref, timeout));
  }
  absl::StatusOr<ListJobsReply> ListJobs(absl::Duration timeout) override {
    return Told(client_->ListJobs(timeout));
  }
  absl::StatusOr<JobStatus> CancelJob(const JobRef& ref, absl::Duration timeout) override {
    return Told(client_->CancelJob(ref, timeout));
  }
  absl::StatusOr<CreateCheckpointReply> CreateCheckpoint(const CreateCheckpointRequest& request,
                                                         absl::Duration timeout) override {
    return Told(client_->CreateCheckpoint(request, timeout));
  }
  absl::StatusOr<ClusterStatus> GetCluster(absl::Duration timeout) override {
    return Told(client_->GetCluster(timeout));
  }
  absl::StatusOr<JobShards> GetShards(const JobRef& ref, absl::Duration timeout) override {
    return Told(client_->GetShards(ref, timeout));
  }
  absl::StatusOr<GetEventsReply> GetEvents(const GetEventsRequest& request,
                                           absl::Duration timeout) override {
    return Told(client_->GetEvents(request, timeout));
  }
  absl::StatusOr<SettleQuarantineReply> SettleQuarantine(const SettleQuarantineRequest& request,
                                                         absl::Duration timeout) override {
    return Told(client_->SettleQuarantine(request, timeout));
  }

 private:
  template <typename Reply>
  absl::StatusOr<Reply> Told(absl::StatusOr<Reply> reply) const {
    if (reply.ok()) return reply;
    return WithChoice(reply.status(), chosen_);
  }

  const ChosenCluster chosen_;
  const std::unique_ptr<SchedulerClient> client_;
};

}  // namespace

absl::Status WithChoice(const absl::Status& status, const ChosenCluster& chosen) {
  if (!absl::IsUnavailable(status) && !absl::IsUnauthenticated(status)) return status;
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), " (", chosen.named_by,
                                   chosen.certs.empty() ? ", without TLS" : "", ")"));
}

absl::StatusOr<std::unique_ptr<SchedulerClient>> ConnectScheduler(const ClusterOptions& given,
                                                                  KnownLease* lease) {
  absl::StatusOr<ChosenCluster> chosen = ChooseCluster(given);
  if (!chosen.ok()) return chosen.status();
  auto client = MakeGrpcSchedulerClient(chosen->scheduler, lease);
  return std::make_unique<ChosenScheduler>(*std::move(chosen), std::move(client));
}

}  // namespace strata
