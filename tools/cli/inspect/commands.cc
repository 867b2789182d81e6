#include "tools/cli/inspect/commands.h"

#include <atomic>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "tools/cli/base/interrupt.h"
#include "tools/cli/base/job_watch.h"
#include "tools/cli/context/connection.h"
#include "tools/cli/inspect/quarantine_text.h"
#include "tools/cli/inspect/text.h"

namespace strata {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(5);
// How long one call of --follow waits for something new: also how late Ctrl-C may act.
constexpr absl::Duration kFollowWait = absl::Milliseconds(500);
// How long the scheduler may be gone before --follow gives up.
constexpr absl::Duration kReconnectLimit = absl::Seconds(60);

void Print(const GetEventsReply& reply, bool json) {
  for (const Event& e : reply.events()) {
    std::printf("%s\n", (json ? EventJson(e) : EventLine(e, absl::LocalTimeZone())).c_str());
  }
  std::fflush(stdout);
}

// Asks on from `request.after_sequence` until Ctrl-C.
ExitCode Follow(SchedulerClient& client, GetEventsRequest request, bool json) {
  const std::atomic<bool>& interrupted = CatchInterrupts();
  request.set_wait_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(kFollowWait)));
  absl::Time answered = Clock::Real()->Now();
  bool gone = false;
  while (!interrupted) {
    absl::StatusOr<GetEventsReply> reply = client.GetEvents(request, kFollowWait + kCallTimeout);
    if (!reply.ok()) {
      if (!absl::IsUnavailable(reply.status()) ||
          Clock::Real()->Now() - answered > kReconnectLimit) {
        return ReportError(reply.status());
      }
      if (!gone) std::fprintf(stderr, "the scheduler does not answer; trying on\n");
      gone = true;
      absl::SleepFor(kFollowWait);
      continue;
    }
    if (gone) std::fprintf(stderr, "the scheduler answers again\n");
    gone = false;
    answered = Clock::Real()->Now();
    if (reply->first_sequence() > request.after_sequence() + 1) {
      std::fprintf(stderr, "%s events came and went unseen\n",
                   absl::StrCat(reply->first_sequence() - request.after_sequence() - 1).c_str());
    }
    Print(*reply, json);
    request.set_after_sequence(reply->last_sequence());
  }
  return kExitOk;
}

}  // namespace

ExitCode RunNodes(const NodesOptions& options) {
  absl::StatusOr<std::unique_ptr<SchedulerClient>> client = ConnectScheduler(options.cluster);
  if (!client.ok()) return ReportError(client.status());
  absl::StatusOr<ClusterStatus> cluster = (*client)->GetCluster(kCallTimeout);
  if (!cluster.ok()) return ReportError(cluster.status());
  if (options.quarantined) {
    std::printf("%s%s",
                options.json ? QuarantineJson(*cluster).c_str()
                             : QuarantineTable(*cluster, absl::LocalTimeZone()).c_str(),
                options.json ? "\n" : "");
    return kExitOk;
  }
  std::printf(
      "%s%s",
      options.json ? NodesJson(*cluster).c_str() : NodesTable(*cluster, absl::Now()).c_str(),
      options.json ? "\n" : "");
  return kExitOk;
}

ExitCode RunShards(const ShardsOptions& options) {
  absl::StatusOr<std::unique_ptr<SchedulerClient>> client = ConnectScheduler(options.cluster);
  if (!client.ok()) return ReportError(client.status());
  absl::StatusOr<JobShards> shards = (*client)->GetShards(ParseJobRef(options.job), kCallTimeout);
  if (!shards.ok()) return ReportError(shards.status());
  std::printf("%s%s", options.json ? ShardsJson(*shards).c_str() : ShardsTable(*shards).c_str(),
              options.json ? "\n" : "");
  return kExitOk;
}

ExitCode RunEvents(const EventsOptions& options) {
  GetEventsRequest request;
  if (!options.job.empty()) *request.mutable_job() = ParseJobRef(options.job);
  if (!options.since.empty()) {
    const absl::Status since = SetSince(options.since, absl::LocalTimeZone(), request);
    if (!since.ok()) return ReportError(since);
  }
  absl::StatusOr<std::unique_ptr<SchedulerClient>> client = ConnectScheduler(options.cluster);
  if (!client.ok()) return ReportError(client.status());
  absl::StatusOr<GetEventsReply> reply = (*client)->GetEvents(request, kCallTimeout);
  if (!reply.ok()) return ReportError(reply.status());
  Print(*reply, options.json);
  if (!options.follow) return kExitOk;
  // What comes is new by its sequence.
  request.clear_since_unix_ms();
  request.clear_since_ago_ms();
  request.set_after_sequence(reply->last_sequence());
  return Follow(**client, std::move(request), options.json);
}

}  // namespace strata
