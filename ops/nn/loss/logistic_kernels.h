// The instruction-set builds of logistic.h; logistic.cc chooses one.
// Tested by tests/ops/nn/fm_test.cc
#ifndef STRATA_OPS_NN_LOSS_LOGISTIC_KERNELS_H_
#define STRATA_OPS_NN_LOSS_LOGISTIC_KERNELS_H_

#include <cstddef>

namespace strata::ops {

namespace v3 {
void Sigmoid(size_t n, const float* logits, float* predictions);
void LogisticLoss(size_t n, const float* logits, const float* labels, float* predictions,
                  float* losses, float* gradients);
}  // namespace v3

namespace v4 {
void Sigmoid(size_t n, const float* logits, float* predictions);
void LogisticLoss(size_t n, const float* logits, const float* labels, float* predictions,
                  float* losses, float* gradients);
}  // namespace v4

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_LOSS_LOGISTIC_KERNELS_H_
