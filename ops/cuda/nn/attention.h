// Attention of one vector of an example over the values of a sequence, on a device:
// ops/nn/attention.h for all examples at once, to the bit. All pointers are in device memory;
// everything is asynchronous.
#ifndef STRATA_OPS_CUDA_NN_ATTENTION_H_
#define STRATA_OPS_CUDA_NN_ATTENTION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/nn/layers.h"

namespace strata::ops::gpu {

// One sequence of each example, with room for `most` values: row i x most + p of what is (rows, ..)
// below is of example i's value p. Beyond a sequence's length such rows are zeros.
struct AttentionTask {
  uint32_t examples = 0, most = 0, dim = 0;
  const uint32_t* lengths = nullptr;  // of example i: lengths[i * lengths_stride]
  uint32_t lengths_stride = 1;
  // Columns of a row of the example: its values behind each other, the vector that judges them, and
  // their sum.
  uint32_t values = 0, target = 0, sum = 0;
};

// out (rows, 4 dim), from `vectors`.
absl::Status AttentionInputs(CudaApi& api, const AttentionTask& task, const Matrix& vectors,
                             const Matrix& out, StreamHandle stream);
// The sums' columns of `vectors`. weights: (rows, 1).
absl::Status AttentionSum(CudaApi& api, const AttentionTask& task, const Matrix& weights,
                          const Matrix& vectors, StreamHandle stream);
// Derivatives by the weights, (rows, 1), from those by the sums, which stand in `gradients` as the
// sums do in `vectors`.
absl::Status AttentionWeightGradients(CudaApi& api, const AttentionTask& task,
                                      const Matrix& vectors, const Matrix& gradients,
                                      const Matrix& weight_gradients, StreamHandle stream);
// The values' columns of `gradients`, and what the targets' get beside what is there. inputs: by
// AttentionInputs' out.
absl::Status AttentionBackward(CudaApi& api, const AttentionTask& task, const Matrix& vectors,
                               const Matrix& weights, const Matrix& inputs, const Matrix& gradients,
                               StreamHandle stream);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_NN_ATTENTION_H_
