#include "tools/cli/job/commands.h"

#include <atomic>
#include <cstdio>
#include <memory>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "proto/job/data_spec.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/files/job_places.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tools/cli/base/interrupt.h"
#include "tools/cli/base/job_text.h"
#include "tools/cli/base/job_watch.h"
#include "tools/cli/base/progress.h"
#include "tools/cli/base/security_text.h"
#include "tools/cli/context/connection.h"
#include "tools/cli/job/file.h"

namespace strata {
namespace {

// How long a question to the scheduler may take.
constexpr absl::Duration kCallTimeout = absl::Seconds(5);
// The scheduler looks at folders meanwhile, and whether somebody renews the lock of one.
constexpr absl::Duration kSubmitTimeout = absl::Seconds(16);

std::string RandomId() {
  std::random_device random;
  return absl::StrFormat("%08x%08x%08x%08x", random(), random(), random(), random());
}

// Prints the end of a job; the exit code that belongs to it.
ExitCode PrintEnd(const JobStatus& status, bool json) {
  std::printf("%s%s", json ? JobJson(status).c_str() : JobSummary(status).c_str(),
              json ? "\n" : "");
  return status.state() == SUCCEEDED ? kExitOk : kExitFailed;
}

// Follows the job with progress on stderr.
ExitCode Watch(SchedulerClient& client, const JobRef& ref, const std::string& name,
               double timeout_seconds, bool json) {
  ProgressPrinter progress(ProgressOptions::ForStderr());
  WatchOptions watch;
  if (timeout_seconds > 0) watch.timeout = absl::Seconds(timeout_seconds);
  watch.interrupted = &CatchInterrupts();
  watch.on_status = [&](const JobStatus& s) { progress.Show(s, Clock::Real()->Now()); };
  watch.on_message = [&](const std::string& line) { progress.Note(line); };
  const absl::StatusOr<JobStatus> end = WatchJob(client, ref, watch);
  progress.Finish();
  if (end.ok()) return PrintEnd(*end, json);
  const std::string how = absl::StrCat("The job goes on. Watch it: strata status ", name,
                                       " --watch   Stop it: strata cancel ", name);
  if (absl::IsCancelled(end.status())) {
    std::fprintf(stderr, "Detached. %s\n", how.c_str());
    return kExitInterrupted;
  }
  const ExitCode code = ReportError(end.status());
  if (code == kExitTimeout || code == kExitUnreachable) std::fprintf(stderr, "%s\n", how.c_str());
  return code;
}

}  // namespace

ExitCode RunSubmit(const SubmitOptions& options) {
  absl::StatusOr<TrainingJob> job = LoadJobFile(options.source.file, options.source.overrides);
  if (!job.ok()) return ReportError(job.status());
  if (spec::ReadsStandardInput(job->spec().data())) {
    return ReportError(absl::InvalidArgumentError(
        "spec.data: '-' is standard input, which the workers of a cluster cannot read; write the "
        "data to a file that they can, or use `strata train`"));
  }
  if (absl::Status s = CheckPlacesOfFile(options.source.file, *job, options.overwrite,
                                         JobPlacesOptions::Storage::kName);
      !s.ok())
    return ReportError(s);
  absl::StatusOr<std::unique_ptr<SchedulerClient>> client = ConnectScheduler(options.cluster);
  if (!client.ok()) return ReportError(client.status());
  SubmitRequest request;
  *request.mutable_job() = *job;
  request.set_request_id(RandomId());
  request.set_resume(options.resume);
  request.set_overwrite(options.overwrite);
  absl::StatusOr<SubmitReply> reply = (*client)->Submit(request, kSubmitTimeout);
  // The same request again is the same job: one repetition hides a scheduler that restarts.
  if (absl::IsUnavailable(reply.status())) reply = (*client)->Submit(request, kSubmitTimeout);
  if (!reply.ok()) return ReportError(reply.status());
  const std::string& name = job->metadata().name();
  std::fprintf(stderr, "submitted %s as job %s\n", name.c_str(),
               absl::StrCat(reply->job()).c_str());
  JobRef ref;
  ref.set_job(reply->job());
  if (options.wait) return Watch(**client, ref, name, options.timeout_seconds, options.json);
  if (options.json) {
    absl::StatusOr<JobStatus> status = (*client)->GetJob(ref, kCallTimeout);
    if (!status.ok()) return ReportError(status.status());
    std::printf("%s\n", JobJson(*status).c_str());
  } else {
    std::printf("%s\n", absl::StrCat(reply->job()).c_str());
  }
  return kExitOk;
}

ExitCode RunList(const ListOptions& options) {
  absl::StatusOr<std::unique_ptr<SchedulerClient>> client = ConnectScheduler(options.cluster);
  if (!client.ok()) return ReportError(client.status());
  absl::StatusOr<ListJobsReply> jobs = (*client)->ListJobs(kCallTimeout);
  if (!jobs.ok()) return ReportError(jobs.status());
  std::printf("%s%s", options.json ? JobListJson(*jobs).c_str() : JobTable(*jobs).c_str(),
              options.json ? "\n" : "");
  return kExitOk;
}

ExitCode RunStatus(const StatusOptions& options) {
  if (options.job.empty() && options.watch) {
    return ReportError(absl::InvalidArgumentError("status --watch wants the job to watch"));
  }
  const absl::StatusOr<Way> way = FindWay(options.cluster);
  if (!way.ok()) return ReportError(way.status());
  const std::unique_ptr<SchedulerClient> client = ConnectScheduler(*way);
  if (!options.job.empty()) {
    const JobRef ref = ParseJobRef(options.job);
    absl::StatusOr<JobStatus> status = client->GetJob(ref, kCallTimeout);
    if (!status.ok()) return ReportError(status.status());
    if (options.watch) return Watch(*client, ref, options.job, 0, options.json);
    std::printf("%s%s", options.json ? JobJson(*status).c_str() : JobDetails(*status).c_str(),
                options.json ? "\n" : "");
    return kExitOk;
  }
  absl::StatusOr<ClusterStatus> cluster = client->GetCluster(kCallTimeout);
  if (!cluster.ok()) return ReportError(cluster.status());
  absl::StatusOr<ListJobsReply> jobs = client->ListJobs(kCallTimeout);
  if (!jobs.ok()) return ReportError(jobs.status());
  if (options.json) {
    std::printf("{\"cluster\":%s,\"jobs\":%s}\n", ClusterJson(*cluster).c_str(),
                JobListJson(*jobs).c_str());
  } else {
    const std::string security = SecurityText(*cluster, Clock::Real()->Now(), way->chosen.certs);
    std::printf("%s%s\n%s", ClusterTable(*cluster).c_str(), security.c_str(),
                JobTable(*jobs).c_str());
  }
  return kExitOk;
}

ExitCode RunCancel(const CancelOptions& options) {
  absl::StatusOr<std::unique_ptr<SchedulerClient>> client = ConnectScheduler(options.cluster);
  if (!client.ok()) return ReportError(client.status());
  absl::StatusOr<JobStatus> status = (*client)->CancelJob(ParseJobRef(options.job), kCallTimeout);
  if (!status.ok()) return ReportError(status.status());
  if (options.json) {
    std::printf("%s\n", JobJson(*status).c_str());
  } else {
    std::printf("job %s %s\n", status->name().c_str(), StateName(status->state()).c_str());
  }
  return kExitOk;
}

}  // namespace strata
