// A training job on real processes: a scheduler here, one strata-server and one strata-worker.
#ifndef STRATA_TOOLS_BENCH_CLUSTER_PROCESS_CLUSTER_H_
#define STRATA_TOOLS_BENCH_CLUSTER_PROCESS_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/strata/job.pb.h"
#include "tools/bench/cluster/bench_scheduler.h"
#include "tools/bench/cluster/wire_cluster.h"
#include "tools/bench/job/train_case.h"

namespace strata::bench {

// One thread at a time. The processes end with it.
class ProcessCluster {
 public:
  // Starts them and submits the job; its input is files. The processes' folders go to `directory`.
  static absl::StatusOr<std::unique_ptr<ProcessCluster>> Start(const std::string& directory,
                                                               TrainingJob job);

  // Waits until `examples` were seen. INTERNAL after `patience`.
  absl::Status Await(uint64_t examples, absl::Duration patience) const;
  // A window of that length from now on.
  absl::StatusOr<TrainWindow> Measure(double seconds) const;

  const ChildProcess& server() const { return *server_; }
  const ChildProcess& worker() const { return *worker_; }

 private:
  absl::Status Open(const std::string& directory, TrainingJob job);
  absl::StatusOr<TrainWindow> Totals() const;

  std::unique_ptr<BenchScheduler> scheduler_;
  std::unique_ptr<ChildProcess> server_;
  std::unique_ptr<ChildProcess> worker_;
  std::string metrics_;
};

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_CLUSTER_PROCESS_CLUSTER_H_
