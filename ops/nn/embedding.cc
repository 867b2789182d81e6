#include "ops/nn/embedding.h"

#include "ops/cpu_features.h"
#include "ops/nn/embedding_kernels.h"

namespace strata::ops {

void GatherEmbeddings(const SparseExamples& x, uint32_t dim, uint32_t begin, uint32_t end,
                      const FieldMatrix& out, uint32_t* example) {
  const auto kernel =
      ActiveIsaLevel() == IsaLevel::kV4 ? v4::GatherEmbeddings : v3::GatherEmbeddings;
  kernel(x, dim, begin, end, out, example);
}

void EmbeddingGradients(const SparseExamples& x, uint32_t dim, const FieldMatrix& gradient,
                        const uint32_t* example, const KeyOccurrences& keys, float* out) {
  const auto kernel =
      ActiveIsaLevel() == IsaLevel::kV4 ? v4::EmbeddingGradients : v3::EmbeddingGradients;
  kernel(x, dim, gradient, example, keys, out);
}

void PoolRows(const SparseExamples& x, const FieldRuns& runs, uint32_t begin, uint32_t end,
              float* out) {
  const auto kernel = ActiveIsaLevel() == IsaLevel::kV4 ? v4::PoolRows : v3::PoolRows;
  kernel(x, runs, begin, end, out);
}

void PooledGradients(const SparseExamples& x, const FieldRuns& runs, const float* gradient,
                     const KeyOccurrences& keys, float* out) {
  const auto kernel = ActiveIsaLevel() == IsaLevel::kV4 ? v4::PooledGradients : v3::PooledGradients;
  kernel(x, runs, gradient, keys, out);
}

}  // namespace strata::ops
