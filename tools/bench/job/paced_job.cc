#include "tools/bench/job/paced_job.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/job/job_spec.h"

namespace strata::bench {
namespace {

constexpr absl::Duration kGiveUp = absl::Seconds(300);
// A look sorts recent scores, which is half a millisecond that training waits for.
constexpr absl::Duration kLook = absl::Milliseconds(20);

}  // namespace

absl::StatusOr<std::unique_ptr<PacedJob>> PacedJob::Make(MemoryDataOptions data,
                                                         const std::string& directory) {
  std::unique_ptr<PacedJob> job(new PacedJob(data.batch_size));
  data.before_read = [at = job.get()](Step step) {
    absl::MutexLock lock(&at->mu_);
    const auto allowed = [at, step]() ABSL_SHARED_LOCKS_REQUIRED(at->mu_) {
      return step.value <= at->allowed_;
    };
    at->mu_.Await(absl::Condition(&allowed));
  };
  job->data_ = MakeMemoryData(data);
  EmbeddedClusterOptions options;
  options.directory = directory;
  options.data = job->data_.get();
  auto cluster = EmbeddedCluster::Start(options);
  if (!cluster.ok()) return cluster.status();
  job->cluster_ = *std::move(cluster);
  return job;
}

PacedJob::~PacedJob() { Allow(~uint64_t{0}); }

void PacedJob::Allow(uint64_t step) {
  absl::MutexLock lock(&mu_);
  allowed_ = step;
}

absl::Status PacedJob::Submit(const TrainingJob& job) {
  SubmitRequest submit;
  *submit.mutable_job() = job;
  if (absl::Status s = ResolveJob(*submit.mutable_job()); !s.ok()) return s;
  submit.set_request_id("bench");
  auto id = cluster_->scheduler().Submit(submit, absl::Seconds(30));
  if (!id.ok()) return id.status();
  job_ = id->job();
  return absl::OkStatus();
}

absl::StatusOr<JobStatus> PacedJob::Status() {
  JobRef ref;
  ref.set_job(job_);
  return cluster_->scheduler().GetJob(ref, absl::Seconds(30));
}

absl::StatusOr<TrainWindow> PacedJob::RunTo(uint64_t step) {
  const Worker& worker = *cluster_->worker(0);
  const WorkerCounters before = worker.Counters();
  const absl::Time from = absl::Now();
  Allow(step);
  while (worker.Counters().examples < step * batch_) {
    if (absl::Now() - from > kGiveUp) {
      auto status = Status();
      return absl::InternalError(absl::StrCat(
          "the job does not come to step ", step, ": ",
          status.ok() ? status->ShortDebugString() : std::string(status.status().message())));
    }
    absl::SleepFor(kLook);
  }
  const WorkerCounters after = worker.Counters();
  TrainWindow window;
  window.seconds = absl::ToDoubleSeconds(absl::Now() - from);
  window.examples = static_cast<double>(after.examples - before.examples);
  window.stages = after.stages - before.stages;
  return window;
}

absl::StatusOr<JobStatus> PacedJob::Finish() {
  Allow(~uint64_t{0});
  for (const absl::Time from = absl::Now(); absl::Now() - from < kGiveUp;) {
    auto status = Status();
    if (!status.ok()) return status;
    if (status->state() == SUCCEEDED) return status;
    if (status->state() == FAILED || status->state() == CANCELLED) break;
    absl::SleepFor(absl::Milliseconds(20));
  }
  return absl::InternalError("the job does not come to its end");
}

}  // namespace strata::bench
