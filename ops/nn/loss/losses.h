// Outputs of models with several labels, labels of other kinds than 0 and 1, or weights of lines:
// what a model's sum predicts, what that costs, and its derivative. With z the sum + the loss's
// offset:
//   logistic  prediction 1 / (1 + e^-z), the logarithmic loss
//   squared   prediction z, 1/2 (z - y)^2
//   poisson   prediction e^z, e^z - y z
//   huber     prediction z, with r = z - y: 1/2 r^2 where |r| <= delta, else delta (|r| - 1/2
//   delta)
//             (Huber, 1964)
// Bits are those of EXACT.md on every machine; logistic ones are logistic.h's.
#ifndef STRATA_OPS_NN_LOSS_LOSSES_H_
#define STRATA_OPS_NN_LOSS_LOSSES_H_

#include <cstddef>

#include "ops/nn/loss/loss_terms.h"

namespace strata::ops {

// One task's share of examples. Arrays belong to the caller.
struct TaskExamples {
  size_t n = 0;
  const float* sums = nullptr;    // (n): without the offset
  const float* labels = nullptr;  // label_stride apart; no number: the example has none
  size_t label_stride = 1;
  const float* weights = nullptr;  // (n), not negative, or null: all 1
  float weight_scale = 1.0f;       // times which they count in derivatives
};

// predictions: `stride` apart.
void TaskPredictions(const Loss& loss, size_t n, const float* sums, float* predictions,
                     size_t stride);

// As TaskPredictions; losses[i] and gradients[i] (n each) are the loss and its derivative by the
// sum times loss.weight, then times the example's weight, of the derivative times weight_scale;
// both 0 without a label. Any thread.
void TaskLosses(const Loss& loss, const TaskExamples& x, float* predictions, size_t stride,
                float* losses, float* gradients);

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_LOSS_LOSSES_H_
