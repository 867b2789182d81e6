#include "tools/cli/inspect/quarantine_command.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "tools/cli/context/connection.h"
#include "tools/cli/inspect/quarantine_text.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::Duration kCallTimeout = absl::Seconds(5);
// The scheduler waits for the server, which removes the files, for ten.
constexpr absl::Duration kSettleTimeout = absl::Seconds(15);

struct Settled {
  QuarantinedJob job;
  absl::StatusOr<SettleQuarantineReply> reply;
  Adopted adopted;
};

// Finds the job that is meant, and asks.
absl::StatusOr<Settled> Settle(const ClusterOptions& chosen, const std::string& typed,
                               const std::string& node, SettleQuarantineRequest::Action action) {
  const auto connected = ConnectScheduler(chosen);
  if (!connected.ok()) return connected.status();
  SchedulerClient* const client = connected->get();
  absl::StatusOr<ClusterStatus> cluster = client->GetCluster(kCallTimeout);
  if (!cluster.ok()) return cluster.status();
  absl::StatusOr<QuarantinedJob> job = FindQuarantined(*cluster, typed, node);
  if (absl::IsNotFound(job.status()) && action == SettleQuarantineRequest::ADOPT) {
    const auto jobs = client->ListJobs(kCallTimeout);
    const absl::Status known = jobs.ok() ? IsKnown(*jobs, typed) : jobs.status();
    if (!known.ok()) return known;
  }
  if (!job.ok()) return job.status();
  SettleQuarantineRequest request;
  request.set_job_uid(job->job_uid());
  request.set_node(node);
  request.set_action(action);
  Settled settled{*std::move(job), client->SettleQuarantine(request, kSettleTimeout), {}};
  if (!settled.reply.ok() || action != SettleQuarantineRequest::ADOPT) return settled;
  const auto jobs = client->ListJobs(kCallTimeout);
  if (jobs.ok()) settled.adopted = AdoptedJob(*jobs, settled.job.job_uid());
  return settled;
}

void Print(const Json& json) {
  std::printf("%s\n", json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

}  // namespace

ExitCode RunNodesAdopt(const NodesAdoptOptions& options) {
  const auto settled = Settle(options.cluster, options.job, "", SettleQuarantineRequest::ADOPT);
  if (!settled.ok()) return ReportError(settled.status());
  const absl::Status status = settled->reply.status();
  const Adopted& adopted = settled->adopted;
  if (options.json) {
    Print(Json{{"jobUid", settled->job.job_uid()},
               {"name", settled->job.name()},
               {"adopted", status.ok()},
               {"job", adopted.job == 0 ? Json(nullptr) : Json(adopted.job)},
               {"message", adopted.job == 0 ? Json(nullptr) : Json(adopted.how)},
               {"error", status.ok() ? Json(nullptr) : Json(std::string(status.message()))}});
  } else if (status.ok()) {
    std::printf("job %s (%s) is this cluster's again, as job %llu: it %s\n",
                settled->job.name().c_str(), settled->job.job_uid().c_str(),
                static_cast<unsigned long long>(adopted.job), adopted.how.c_str());
  }
  return status.ok() ? kExitOk : ReportError(status);
}

ExitCode RunNodesPurge(const NodesPurgeOptions& options) {
  const auto settled =
      Settle(options.cluster, options.job, options.node, SettleQuarantineRequest::PURGE);
  if (!settled.ok()) return ReportError(settled.status());
  if (!settled->reply.ok()) return ReportError(settled->reply.status());
  const QuarantinedJob& job = settled->job;
  if (options.json) {
    Print(Json{{"node", options.node},
               {"jobUid", job.job_uid()},
               {"name", job.name()},
               {"bytes", job.bytes()}});
  } else {
    std::printf("%s removed its copy of job %s (%s)\n", options.node.c_str(), job.name().c_str(),
                job.job_uid().c_str());
  }
  return kExitOk;
}

}  // namespace strata
