// Dot products of every pair of an example's vectors on a device, and their gradients: the values
// of PairwiseDots (ops/nn/pairwise.h), to the bit.
#ifndef STRATA_OPS_CUDA_NN_PAIRWISE_H_
#define STRATA_OPS_CUDA_NN_PAIRWISE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"

namespace strata::ops::gpu {

// All pointers in device memory. An example's vectors have to fit a block's shared memory:
// kInvalidArgument where (vectors + 1) x (dim + 8) floats do not.
struct PairwiseTask {
  uint32_t examples = 0;
  uint32_t vectors = 0, dim = 0;
  const float* t = nullptr;  // (examples, vectors * dim), t_stride floats apart
  size_t t_stride = 0;
  size_t dots_stride = 0;  // floats between examples' (vectors * (vectors - 1) / 2) dots
};

// t_i . t_j, chain over ascending elements, at i (i - 1) / 2 + j for j < i. Asynchronous.
absl::Status PairwiseForward(CudaApi& api, const PairwiseTask& task, float* dots,
                             StreamHandle stream);

// gradient (examples, vectors * dim), t_stride apart, what it held is not read: of t_i: the sum
// over j ascending, i itself with factor 0, of dots_gradient_ij t_j. Asynchronous.
absl::Status PairwiseBackward(CudaApi& api, const PairwiseTask& task, const float* dots_gradient,
                              float* gradient, StreamHandle stream);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_NN_PAIRWISE_H_
