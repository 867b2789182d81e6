// A training job in this process that runs until nobody needs it any more.
#ifndef STRATA_TOOLS_BENCH_JOB_RUNNING_JOB_H_
#define STRATA_TOOLS_BENCH_JOB_RUNNING_JOB_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/strata/job.pb.h"
#include "tools/bench/job/train_case.h"
#include "tools/cluster/embedded/cluster.h"
#include "worker/data/reading/data_access.h"

namespace strata::bench {

class RunningJob {
 public:
  // Scheduler, server and worker, whose files go to `directory`; `data` outlives it.
  static absl::StatusOr<std::unique_ptr<RunningJob>> Start(TrainingJob job, DataAccess* data,
                                                           const std::string& directory);

  // A window of that length, after `warm_up` examples were seen.
  absl::StatusOr<TrainWindow> Measure(double seconds, uint64_t warm_up);

 private:
  absl::Status Stuck();

  std::unique_ptr<EmbeddedCluster> cluster_;
  uint64_t job_ = 0;
};

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_JOB_RUNNING_JOB_H_
