#include "ops/nn/loss/logistic_kernels.h"

#include "ops/exact_math.h"

namespace strata::ops::STRATA_ISA {

void Sigmoid(size_t n, const float* __restrict logits, float* __restrict predictions) {
  for (size_t i = 0; i < n; ++i) predictions[i] = exact::Sigmoid(logits[i]);
}

void LogisticLoss(size_t n, const float* __restrict logits, const float* __restrict labels,
                  float* __restrict predictions, float* __restrict losses,
                  float* __restrict gradients) {
  for (size_t i = 0; i < n; ++i) {
    const float p = exact::Sigmoid(logits[i]);
    predictions[i] = p;
    gradients[i] = p - labels[i];
  }
  for (size_t i = 0; i < n; ++i) losses[i] = exact::LogLoss(logits[i], labels[i]);
}

}  // namespace strata::ops::STRATA_ISA
