#include "ops/nn/loss/logistic.h"

#include "ops/cpu_features.h"
#include "ops/nn/loss/logistic_kernels.h"

namespace strata::ops {

void Sigmoid(size_t n, const float* logits, float* predictions) {
  const auto kernel = ActiveIsaLevel() == IsaLevel::kV4 ? v4::Sigmoid : v3::Sigmoid;
  kernel(n, logits, predictions);
}

void LogisticLoss(size_t n, const float* logits, const float* labels, float* predictions,
                  float* losses, float* gradients) {
  const auto kernel = ActiveIsaLevel() == IsaLevel::kV4 ? v4::LogisticLoss : v3::LogisticLoss;
  kernel(n, logits, labels, predictions, losses, gradients);
}

}  // namespace strata::ops
