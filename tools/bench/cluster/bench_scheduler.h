// A scheduler in this process that others reach over loopback, and the job it is given.
#ifndef STRATA_TOOLS_BENCH_CLUSTER_BENCH_SCHEDULER_H_
#define STRATA_TOOLS_BENCH_CLUSTER_BENCH_SCHEDULER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/strata/job.pb.h"
#include "scheduler/scheduler.h"
#include "scheduler/scheduler_service.h"

namespace strata::bench {

// Its state is in memory only.
class BenchScheduler {
 public:
  static absl::StatusOr<std::unique_ptr<BenchScheduler>> Start();

  // host:port.
  std::string address() const { return service_->address(); }
  scheduler::Scheduler& scheduler() { return *scheduler_; }
  // Fills in the job's defaults and submits it.
  absl::Status Submit(TrainingJob job);

 private:
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<scheduler::SchedulerService> service_;
};

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_CLUSTER_BENCH_SCHEDULER_H_
