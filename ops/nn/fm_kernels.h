// The instruction-set builds of fm.h; fm.cc chooses one.
// Tested by tests/ops/nn/fm_test.cc
#ifndef STRATA_OPS_NN_FM_KERNELS_H_
#define STRATA_OPS_NN_FM_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "ops/coalesce_sum.h"
#include "ops/nn/fm_types.h"
#include "ops/nn/sparse_examples.h"

namespace strata::ops {

#define STRATA_FM_KERNELS                                                                        \
  void LinearForward(const SparseExamples& x, uint32_t column, float bias,                       \
                     const float* numeric_weight, uint32_t begin, uint32_t end, float* logits,   \
                     uint32_t* example);                                                         \
  void FmForward(const SparseExamples& x, uint32_t dim, float bias, const float* numeric_weight, \
                 const float* numeric_embedding, uint32_t begin, uint32_t end,                   \
                 const FmOutputs& out);                                                          \
  void FmEmbeddingGradients(const SparseExamples& x, uint32_t dim, const FmGradientInputs& in,   \
                            const KeyOccurrences& keys, float* out);

namespace v3 {
STRATA_FM_KERNELS
}
namespace v4 {
STRATA_FM_KERNELS
}

#undef STRATA_FM_KERNELS

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_FM_KERNELS_H_
