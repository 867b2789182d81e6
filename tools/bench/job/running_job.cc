#include "tools/bench/job/running_job.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/job/job_spec.h"

namespace strata::bench {

absl::StatusOr<std::unique_ptr<RunningJob>> RunningJob::Start(TrainingJob job, DataAccess* data,
                                                              const std::string& directory) {
  EmbeddedClusterOptions options;
  options.directory = directory;
  options.data = data;
  auto cluster = EmbeddedCluster::Start(options);
  if (!cluster.ok()) return cluster.status();
  auto running = std::make_unique<RunningJob>();
  running->cluster_ = *std::move(cluster);
  SubmitRequest submit;
  *submit.mutable_job() = std::move(job);
  if (absl::Status s = ResolveJob(*submit.mutable_job()); !s.ok()) return s;
  submit.set_request_id("bench");
  auto id = running->cluster_->scheduler().Submit(submit, absl::Seconds(30));
  if (!id.ok()) return id.status();
  running->job_ = id->job();
  return running;
}

absl::StatusOr<TrainWindow> RunningJob::Measure(double seconds, uint64_t warm_up) {
  const Worker& worker = *cluster_->worker(0);
  const absl::Time give_up = absl::Now() + absl::Seconds(120);
  while (worker.Counters().examples < warm_up) {
    if (absl::Now() > give_up) return Stuck();
    absl::SleepFor(absl::Milliseconds(5));
  }
  const WorkerCounters before = worker.Counters();
  const absl::Time from = absl::Now();
  absl::SleepFor(absl::Seconds(seconds));
  const WorkerCounters after = worker.Counters();
  TrainWindow window;
  window.seconds = absl::ToDoubleSeconds(absl::Now() - from);
  window.examples = static_cast<double>(after.examples - before.examples);
  window.stages = after.stages - before.stages;
  return window;
}

absl::Status RunningJob::Stuck() {
  JobRef ref;
  ref.set_job(job_);
  auto status = cluster_->scheduler().GetJob(ref, absl::Seconds(5));
  return absl::InternalError(absl::StrCat(
      "the job does not train: ",
      status.ok() ? status->ShortDebugString() : std::string(status.status().message())));
}

}  // namespace strata::bench
