// What follows from a job and the size of its input alone; the scheduler and every worker must
// agree.
// Tested by tests/scheduler/job/progress_test.cc
#ifndef STRATA_PROTO_JOB_JOB_PLAN_H_
#define STRATA_PROTO_JOB_JOB_PLAN_H_

#include <algorithm>
#include <cstdint>

#include "proto/strata/job.pb.h"

namespace strata {

// Bsp: steps of one pass over `lines` lines, ceil(ceil(lines / lanes) / batch_size).
// REQUIRES: lanes >= 1, batch_size >= 1.
constexpr uint64_t StepsPerEpoch(uint64_t lines, uint32_t lanes, uint32_t batch_size) {
  const uint64_t share = lines / lanes + (lines % lanes != 0);
  return share / batch_size + (share % batch_size != 0);
}

// Bsp: lines (bad ones included) that the first `step` steps of the job took, of `lines` each
// epoch. Lanes' shares of an epoch differ by at most one line, and a lane takes a batch a step
// until its share is used up.
inline uint64_t LinesAtStep(const TrainingSpec& training, uint64_t lines, uint64_t step) {
  const uint64_t lanes = training.lanes(), batch = training.batch_size();
  const uint64_t per_epoch = StepsPerEpoch(lines, training.lanes(), training.batch_size());
  if (per_epoch == 0) return 0;
  const uint64_t taken = (step % per_epoch) * batch;
  const uint64_t long_lanes = lines % lanes, share = lines / lanes;
  return step / per_epoch * lines + long_lanes * std::min(taken, share + 1) +
         (lanes - long_lanes) * std::min(taken, share);
}

// Asynchronous modes: batches of a window that is not the last of its task: what one push or
// exchange stands for. `training` has its defaults resolved.
inline uint64_t BatchesPerWindow(const TrainingSpec& training) {
  if (training.mode() == "downpour") return std::max(1u, training.n_push());
  if (training.mode() == "easgd") return std::max(1u, training.tau());
  return 1;
}

// Asynchronous modes: windows of a task of `batches` batches.
inline uint64_t WindowsOfTask(const TrainingSpec& training, uint64_t batches) {
  const uint64_t n = BatchesPerWindow(training);
  return batches / n + (batches % n != 0);
}

}  // namespace strata

#endif  // STRATA_PROTO_JOB_JOB_PLAN_H_
