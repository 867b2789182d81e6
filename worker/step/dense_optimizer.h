// The local step on a lane's own copy of the dense part (downpour, easgd).
// Tested by tests/worker/device/dense_step_test.cc
// Tested by tests/worker/async/replica_test.cc
#ifndef STRATA_WORKER_STEP_DENSE_OPTIMIZER_H_
#define STRATA_WORKER_STEP_DENSE_OPTIMIZER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "worker/step/local_optimizer.h"

namespace strata {

// Owns the optimizer's state; the weights are the caller's. One thread at a time.
class DenseOptimizer {
 public:
  virtual ~DenseOptimizer() = default;

  // One update of all rows: weights and sums (rows, dense row dim), sums of `examples` >= 1
  // examples. `step` counts from 1. Bits are LocalOptimizer's, wherever it runs. Errors are those
  // of a device; nothing is updated then.
  virtual absl::StatusOr<LocalOptimizer::Counts> Apply(uint64_t step, uint64_t examples,
                                                       float* weights, const float* sums) = 0;
};

}  // namespace strata

#endif  // STRATA_WORKER_STEP_DENSE_OPTIMIZER_H_
