// The lanes of a cohort, computed one after the other; what a model may begin of the next one
// beside is begun.
// Tested by tests/e2e/p3/embedded_test.cc
#ifndef STRATA_WORKER_BSP_COHORT_STEP_H_
#define STRATA_WORKER_BSP_COHORT_STEP_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/parallel.h"
#include "proto/core/ids.h"
#include "worker/bsp/cohort.h"
#include "worker/bsp/lane_preparer.h"
#include "worker/client/exchange.h"
#include "worker/metrics/stage_times.h"
#include "worker/metrics/training_stats.h"
#include "worker/step/gradient.h"
#include "worker/step/model.h"
#include "worker/train/batch_step.h"

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

#endif  // STRATA_WORKER_BSP_COHORT_STEP_H_
