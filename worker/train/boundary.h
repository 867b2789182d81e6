// What happens between two steps on the worker that hosts lane 0: evaluation, early stopping,
// metrics.
// Tested by tests/worker/eval/boundary_test.cc
#ifndef STRATA_WORKER_TRAIN_BOUNDARY_H_
#define STRATA_WORKER_TRAIN_BOUNDARY_H_

#include "absl/status/statusor.h"
#include "proto/core/ids.h"

namespace strata {

// Called by a trainer from its own thread.
class StepBoundary {
 public:
  virtual ~StepBoundary() = default;

  enum class Verdict { kGoOn, kStop };
  // `completed` steps are committed everywhere and no lane-0 contribution of the next step is sent
  // yet, so the weights stand still until this returns. `last`: there is no next step. Step 0 is
  // before the first.
  virtual absl::StatusOr<Verdict> OnBoundary(Step completed, bool last) = 0;
};

}  // namespace strata

#endif  // STRATA_WORKER_TRAIN_BOUNDARY_H_
