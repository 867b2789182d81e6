// Factorization machine on a device: FmForward and FmGradients of ops/nn/fm.h, FmTerms and
// FmTermGradients of ops/nn/fm_heads.h, to the bit.
#ifndef STRATA_OPS_CUDA_NN_FM_H_
#define STRATA_OPS_CUDA_NN_FM_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/rows/coalesce.h"
#include "ops/nn/fm_types.h"
#include "ops/nn/sparse_examples.h"

namespace strata::ops::gpu {

// All pointers, those within x and out too, in device memory.
struct FmTask {
  SparseExamples x;  // rows: embedding (dim), weight (1)
  uint32_t examples = 0;
  uint32_t dim = 0;
};

// logit = bias + first order + 1/2 sum_d ((sum v x)^2 - sum (v x)^2), and what FmOutputs names.
// bias: one float. numeric_weight: (x.numeric_count); numeric_embedding: (x.numeric_count, dim), or
// null when numbers take no part in the second order. Asynchronous.
absl::Status FmForward(CudaApi& api, const FmTask& task, const float* bias,
                       const float* numeric_weight, const float* numeric_embedding,
                       const FmOutputs& out, StreamHandle stream);

// Gradient sums of the unique rows of x.row, grouped as 4-byte keys by `coalescer`: out row u (at
// u * out_stride): of v (dim) and of w (1). Asynchronous.
absl::Status FmGradients(CudaApi& api, const Coalescer& coalescer, const GroupedKeys& grouped,
                         const FmTask& task, const FmGradientInputs& in, float* out,
                         size_t out_stride, StreamHandle stream);

// terms (examples, dim): the second order element by element, 1/2 ((sum v x)^2 - sum (v x)^2), and
// what FmOutputs names but for the logits. numeric_embedding as above. Asynchronous.
absl::Status FmTerms(CudaApi& api, const FmTask& task, const float* numeric_embedding,
                     const FmOutputs& out, float* terms, StreamHandle stream);

// As FmGradients, of v alone and by the terms: term_gradients (examples, dim) instead of
// in.gradient. Asynchronous.
absl::Status FmTermGradients(CudaApi& api, const Coalescer& coalescer, const GroupedKeys& grouped,
                             const FmTask& task, const FmGradientInputs& in,
                             const float* term_gradients, float* out, size_t out_stride,
                             StreamHandle stream);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_NN_FM_H_
