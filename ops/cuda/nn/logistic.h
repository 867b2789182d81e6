// Logistic output of a model on a device: ops/nn/logistic.h's functions, to the bit.
// Tested by tests/ops/cuda/elements_test.cc
#ifndef STRATA_OPS_CUDA_NN_LOGISTIC_H_
#define STRATA_OPS_CUDA_NN_LOGISTIC_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"

namespace strata::ops::gpu {

// predictions[i] = 1 / (1 + e^-logits[i]). (n) each, in device memory. Asynchronous.
absl::Status Sigmoid(CudaApi& api, uint32_t n, const float* logits, float* predictions,
                     StreamHandle stream);

// As Sigmoid; losses[i]: logarithmic loss of label labels[i] (0 or 1); gradients[i] =
// predictions[i] - labels[i], the derivative of losses[i] by logits[i]. (n) each, in device
// memory. Asynchronous.
absl::Status LogisticLoss(CudaApi& api, uint32_t n, const float* logits, const float* labels,
                          float* predictions, float* losses, float* gradients, StreamHandle stream);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_NN_LOGISTIC_H_
