// What the lines of a batch weigh.
#ifndef STRATA_WORKER_STEP_BATCH_WEIGHT_H_
#define STRATA_WORKER_STEP_BATCH_WEIGHT_H_

#include <cstddef>
#include <cstdint>

#include "proto/job/fields/task_spec.h"
#include "worker/step/batch.h"

namespace strata {

// Of lines that have a label for some task: their number or, where lines have weights, the sum of
// these in kWeightUnit. Whole numbers: the sum over a step's batches is exact in any order. It is
// what divides the sums of gradients, which are in the same unit (worker/models/models.h).
inline uint64_t SumOfWeights(const Batch& batch) {
  uint64_t sum = 0;
  for (size_t i = 0; i < batch.size; ++i) {
    bool labelled = false;
    for (size_t t = 0; t < batch.tasks; ++t) {
      const float label = batch.labels[i * batch.tasks + t];
      labelled |= label == label;
    }
    if (!labelled) continue;
    sum += batch.weights.empty()
               ? 1
               : static_cast<uint64_t>(double{batch.weights[i]} / double{kWeightUnit});
  }
  return sum;
}

}  // namespace strata

#endif  // STRATA_WORKER_STEP_BATCH_WEIGHT_H_
