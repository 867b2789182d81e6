#include "ops/nn/fm.h"

#include "ops/coalesce.h"
#include "ops/cpu_features.h"
#include "ops/nn/fm_kernels.h"

namespace strata::ops {

void LinearForward(const SparseExamples& x, uint32_t column, float bias,
                   const float* numeric_weight, uint32_t begin, uint32_t end, float* logits,
                   uint32_t* example) {
  const auto kernel = ActiveIsaLevel() == IsaLevel::kV4 ? v4::LinearForward : v3::LinearForward;
  kernel(x, column, bias, numeric_weight, begin, end, logits, example);
}

void FmForward(const SparseExamples& x, uint32_t dim, float bias, const float* numeric_weight,
               const float* numeric_embedding, uint32_t begin, uint32_t end, const FmOutputs& out) {
  const auto kernel = ActiveIsaLevel() == IsaLevel::kV4 ? v4::FmForward : v3::FmForward;
  kernel(x, dim, bias, numeric_weight, numeric_embedding, begin, end, out);
}

void FmGradients(const SparseExamples& x, uint32_t dim, const FmGradientInputs& in,
                 const KeyOccurrences& keys, float* out) {
  const auto kernel =
      ActiveIsaLevel() == IsaLevel::kV4 ? v4::FmEmbeddingGradients : v3::FmEmbeddingGradients;
  kernel(x, dim, in, keys, out);
  CoalesceScaled(keys, in.example, in.gradient, x.values, out + dim, x.stride);
}

}  // namespace strata::ops
