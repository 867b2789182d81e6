// One batch forward and backward: from pulled weights to the gradient that a push carries.
// Tested by tests/e2e/p3/embedded_test.cc
#ifndef STRATA_WORKER_TRAIN_BATCH_STEP_H_
#define STRATA_WORKER_TRAIN_BATCH_STEP_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/parallel.h"
#include "worker/client/exchange.h"
#include "worker/device/row_memory.h"
#include "worker/metrics/stage_times.h"
#include "worker/metrics/training_stats.h"
#include "worker/step/batch.h"
#include "worker/step/gradient.h"
#include "worker/step/model.h"

namespace strata {

// A batch's rows: (distinct keys, row dim of the table) on the host, or on the model's device.
struct BatchRows {
  const float* here = nullptr;
  RowsThere there;                      // instead of here, with the memory for their gradients
  device::RowMemory* memory = nullptr;  // outlives the call
};

// What a batch is computed with. All outlive it; one thread at a time.
class BatchStep {
 public:
  BatchStep(const Exchange* exchange, Model* model, ops::Parallel* parallel, TrainingStats* stats)
      : exchange_(exchange), model_(model), parallel_(parallel), stats_(stats) {}

  // dense: (dense rows, dense row dim). Counts examples, loss and bad lines. The gradient's rows
  // are where `rows` are. A batch without examples, or whose examples weigh nothing, gives a
  // gradient without rows: it adds nothing to any sum. `clock` is that of the calling thread: the
  // time goes to the passes. Errors: the model's, and the memory's. REQUIRES: rows on the host, or
  // a push without counts. `beside`, unless null, is called once: before the model computes or, if
  // it waits for a device, while it does. Its error is returned.
  using Beside = std::function<absl::Status()>;
  absl::StatusOr<std::shared_ptr<const Gradient>> Run(const Batch& batch, const RoutedKeys& routed,
                                                      const BatchRows& rows, const float* dense,
                                                      StageClock* clock,
                                                      const Beside& beside = nullptr);

 private:
  const Exchange* const exchange_;
  Model* const model_;
  ops::Parallel* const parallel_;
  TrainingStats* const stats_;
  // Tells of the batch; predictions_ are its.
  void CountBatch(const Batch& batch, double loss, uint64_t sum_of_weights);
  // Rows with the counts behind them: occurrences, and those in examples whose first label is 1.
  void AddCounts(const Batch& batch, const RoutedKeys& routed, std::vector<float>& rows) const;

  std::vector<float> predictions_;                       // (examples, tasks)
  std::vector<float> first_labels_, first_predictions_;  // (examples): of several tasks
  std::vector<float> sums_;  // (distinct keys, row dim of the table), where a push carries more
};

}  // namespace strata

#endif  // STRATA_WORKER_TRAIN_BATCH_STEP_H_
