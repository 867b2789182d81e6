// Logistic output of a model: probability, logarithmic loss and its derivative.
// Tested by tests/ops/nn/fm_test.cc, tests/ops/cuda/nn/losses_test.cc
#ifndef STRATA_OPS_NN_LOSS_LOGISTIC_H_
#define STRATA_OPS_NN_LOSS_LOGISTIC_H_

#include <cstddef>

namespace strata::ops {

// predictions[i] = 1 / (1 + e^-logits[i]). (n) each. Any thread.
void Sigmoid(size_t n, const float* logits, float* predictions);

// As Sigmoid; losses[i] = logarithmic loss of label labels[i] (0 or 1), computed from the logit so
// that it never overflows; gradients[i] = predictions[i] - labels[i]. (n) each. Any thread.
void LogisticLoss(size_t n, const float* logits, const float* labels, float* predictions,
                  float* losses, float* gradients);

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_LOSS_LOGISTIC_H_
