#include "tools/bench/cluster/bench_scheduler.h"

#include <utility>

#include "absl/time/time.h"
#include "proto/job/job_spec.h"
#include "proto/strata/control.pb.h"
#include "scheduler/store/memory_metadata_store.h"

namespace strata::bench {

absl::StatusOr<std::unique_ptr<BenchScheduler>> BenchScheduler::Start() {
  auto out = std::make_unique<BenchScheduler>();
  scheduler::SchedulerOptions options;
  options.store = scheduler::MakeMemoryMetadataStore();
  options.transient = true;
  auto scheduler = scheduler::Scheduler::Start(std::move(options));
  if (!scheduler.ok()) return scheduler.status();
  out->scheduler_ = *std::move(scheduler);
  scheduler::SchedulerServiceOptions service;
  service.scheduler = out->scheduler_.get();
  auto started = scheduler::SchedulerService::Start(service);
  if (!started.ok()) return started.status();
  out->service_ = *std::move(started);
  return out;
}

absl::Status BenchScheduler::Submit(TrainingJob job) {
  SubmitRequest submit;
  *submit.mutable_job() = std::move(job);
  if (absl::Status s = ResolveJob(*submit.mutable_job()); !s.ok()) return s;
  submit.set_request_id("bench");
  return scheduler_->Submit(submit, absl::Seconds(30)).status();
}

}  // namespace strata::bench
