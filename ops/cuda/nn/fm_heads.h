// The second order of a factorization machine for several tasks on a device: what worker/models'
// fm_heads.h adds to logits, and its derivatives, to the bit. All pointers are in device memory;
// everything is asynchronous.
#ifndef STRATA_OPS_CUDA_NN_FM_HEADS_H_
#define STRATA_OPS_CUDA_NN_FM_HEADS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/nn/layers.h"

namespace strata::ops::gpu {

struct FmHeadsTask {
  uint32_t examples = 0, dim = 0, tasks = 0;
  const float* weight = nullptr;  // (dim, tasks): each task's weights of the elements, less one
};

// logits (examples, tasks): + sum_d (1 + w_dt) terms_d, ascending d. terms: (examples, dim).
absl::Status AddFmHeads(CudaApi& api, const FmHeadsTask& task, const float* terms,
                        const Matrix& logits, StreamHandle stream);

// Derivatives by the terms: out (examples, dim) = sum_t g_t (1 + w_dt), ascending t. gradients:
// (examples, tasks).
absl::Status FmHeadGradients(CudaApi& api, const FmHeadsTask& task, const Matrix& gradients,
                             float* out, StreamHandle stream);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_NN_FM_HEADS_H_
