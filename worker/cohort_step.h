// The lanes of a cohort, computed one after the other; what a model may begin of the next one
// beside is begun.
#ifndef STRATA_WORKER_COHORT_STEP_H_
#define STRATA_WORKER_COHORT_STEP_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/parallel.h"
#include "proto/core/ids.h"
#include "worker/batch_step.h"
#include "worker/cohort.h"
#include "worker/exchange.h"
#include "worker/gradient.h"
#include "worker/lane_preparer.h"
#include "worker/model.h"
#include "worker/stage_times.h"
#include "worker/training_stats.h"

namespace strata {

// One thread at a time.
class CohortStep {
 public:
  // All outlive it. last_step: of the preparer.
  CohortStep(const Exchange* exchange, Model* model, ops::Parallel* parallel, TrainingStats* stats,
             LanePreparer* preparer, Step last_step)
      : exchange_(exchange),
        model_(model),
        parallel_(parallel),
        preparer_(preparer),
        last_step_(last_step),
        batch_step_(exchange, model, parallel, stats) {}

  // The gradient of lane number i of the cohort. `beside` is called before it or, where the model
  // waits for a device, while it does. Errors: BatchStep's.
  absl::StatusOr<GradientPtr> Run(const CohortData& data, size_t i, StageClock* clock,
                                  const std::function<void()>& beside);

 private:
  // What is computed after that, if its batch is ready; null: nobody knows.
  std::shared_ptr<const PreparedLane> After(const CohortData& data, size_t i);

  const Exchange* const exchange_;
  Model* const model_;
  ops::Parallel* const parallel_;
  LanePreparer* const preparer_;
  const Step last_step_;
  BatchStep batch_step_;
  std::vector<float> lane_rows_;
};

}  // namespace strata

#endif  // STRATA_WORKER_COHORT_STEP_H_
