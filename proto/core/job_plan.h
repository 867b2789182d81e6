// What follows from a job and the size of its input alone; the scheduler and every worker must
// agree.
#ifndef STRATA_PROTO_CORE_JOB_PLAN_H_
#define STRATA_PROTO_CORE_JOB_PLAN_H_

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

#endif  // STRATA_PROTO_CORE_JOB_PLAN_H_
