#include "tools/cli/context/connection.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/credentials/scheduler_handshake.h"
#include "proto/runtime/transport/grpc_scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tools/cli/context/my_credentials.h"

namespace strata {
namespace {

// Passes every call on, and has errors say how the cluster was chosen.
class ChosenScheduler : public SchedulerClient {
 public:
  ChosenScheduler(const Way& way, KnownLease* lease)
      : way_(way), client_(MakeGrpcSchedulerClient(way.chosen.scheduler, way.tls, lease)) {}

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
    absl::Status why = reply.status();
    if (absl::IsUnavailable(why)) {
      const absl::Status refused =
          WhyNoHandshake(way_.chosen.scheduler, way_.tls == nullptr ? nullptr : way_.tls->source());
      if (!refused.ok()) why = refused;
    }
    return WithChoice(why, way_.chosen);
  }

  const Way way_;
  const std::unique_ptr<SchedulerClient> client_;
};

}  // namespace

absl::Status WithChoice(const absl::Status& status, const ChosenCluster& chosen) {
  if (!absl::IsUnavailable(status) && !absl::IsUnauthenticated(status)) return status;
  return absl::Status(status.code(), absl::StrCat(status.message(), " (", chosen.named_by,
                                                  chosen.certs.empty() ? ", without TLS"
                                                                       : ", as the certificate in ",
                                                  chosen.certs, ")"));
}

absl::StatusOr<Way> FindWay(const ClusterOptions& given) {
  absl::StatusOr<ChosenCluster> chosen = ChooseCluster(given);
  if (!chosen.ok()) return chosen.status();
  Way way{*std::move(chosen), nullptr};
  if (way.chosen.certs.empty()) return way;
  // For its errors, which say more.
  const auto mine = OpenMyCredentials(way.chosen.certs, *Clock::Real());
  if (!mine.ok()) return WithChoice(mine.status(), way.chosen);
  auto tls = ProcessTls::Open({.folder = way.chosen.certs});
  if (!tls.ok()) return WithChoice(tls.status(), way.chosen);
  way.tls = *std::move(tls);
  return way;
}

std::unique_ptr<SchedulerClient> ConnectScheduler(const Way& way, KnownLease* lease) {
  return std::make_unique<ChosenScheduler>(way, lease);
}

absl::StatusOr<std::unique_ptr<SchedulerClient>> ConnectScheduler(const ClusterOptions& given) {
  const absl::StatusOr<Way> way = FindWay(given);
  if (!way.ok()) return way.status();
  return ConnectScheduler(*way);
}

}  // namespace strata
