// Trains a job on servers of this process as a worker does, and tells how long its steps take.
// Tested by tests/tools/gpu/dlrm/bar_test.cc
#ifndef STRATA_TOOLS_GPU_DLRM_TRAINING_H_
#define STRATA_TOOLS_GPU_DLRM_TRAINING_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ops/parallel.h"
#include "proto/strata/job.pb.h"
#include "tools/gpu/dlrm/data.h"
#include "tools/gpu/dlrm/servers.h"
#include "worker/client/push_sequences.h"
#include "worker/device/worker_device.h"
#include "worker/metrics/stage_times.h"

namespace strata::gpu_check {

struct DlrmTrainingOptions {
  // All outlive the call.
  DlrmServers* servers = nullptr;
  const device::WorkerDevice* device = nullptr;
  ops::Parallel* parallel = nullptr;  // makes the batches
  TrainingJob job;                    // defaults resolved
  DlrmDataOptions data;
  uint64_t session = 2;  // of the worker; another one each time
  // Before the first window: warm_steps, and more while they have not taken warm_ms, but no more
  // than most_warm_steps.
  uint32_t warm_steps = 0, most_warm_steps = 0;
  double warm_ms = 0;
  uint32_t windows = 5;       // of which the median counts
  uint32_t window_steps = 8;  // at least, of each
  // Steps that are not over then are left out, if there was a window.
  double most_seconds = 60;
};

struct DlrmTraining {
  uint64_t steps = 0;       // committed
  bool cut_short = false;   // the time was up
  uint64_t warm_steps = 0;  // before the first window
  uint32_t windows = 0;
  double step_ms = 0;  // the median over windows of the mean step
  double loss = 0;     // mean of recent steps, finite
  // Of one step, over all windows together: seconds, and rows that were not in HBM and then were.
  StageSeconds stages;
  double moved_up = 0;
  // Of one step, over all of them: bytes of messages, and rows that were pulled or pushed by device
  // memory.
  double message_bytes = 0;
  double rows_there = 0;
};

// The batches are made before the clock runs. Steps go on from the servers' clock.
// DEADLINE_EXCEEDED: the time was up before a window was over. INTERNAL: the loss is not a number,
// or servers did not commit each step. Other errors are the session's.
absl::StatusOr<DlrmTraining> TrainDlrm(const DlrmTrainingOptions& options);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_DLRM_TRAINING_H_
