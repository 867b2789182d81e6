// A training job inside this process that goes as far as it is told and waits there, so that two of
// them can take turns.
#ifndef STRATA_TOOLS_BENCH_JOB_PACED_JOB_H_
#define STRATA_TOOLS_BENCH_JOB_PACED_JOB_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "proto/core/ids.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tools/bench/job/memory_data.h"
#include "tools/bench/job/train_case.h"
#include "tools/cluster/embedded/cluster.h"

namespace strata::bench {

// Used by one thread.
class PacedJob {
 public:
  // A cluster without a job yet. `data.before_read` is the pace's; lines say where the job ends.
  static absl::StatusOr<std::unique_ptr<PacedJob>> Make(MemoryDataOptions data,
                                                        const std::string& directory);
  ~PacedJob();

  absl::Status Submit(const TrainingJob& job);
  // Lets it go on to the end of `step`, waits until it is there, and says what happened between.
  absl::StatusOr<TrainWindow> RunTo(uint64_t step);
  // Lets it go to its end.
  absl::StatusOr<JobStatus> Finish();
  absl::StatusOr<JobStatus> Status();

 private:
  explicit PacedJob(uint32_t batch) : batch_(batch) {}
  void Allow(uint64_t step);

  const uint32_t batch_;
  absl::Mutex mu_;
  uint64_t allowed_ ABSL_GUARDED_BY(mu_) = 0;
  std::unique_ptr<DataAccess> data_;
  std::unique_ptr<EmbeddedCluster> cluster_;
  uint64_t job_ = 0;
};

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_JOB_PACED_JOB_H_
