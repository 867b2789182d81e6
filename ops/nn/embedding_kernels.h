// The instruction-set builds of embedding.h; embedding.cc chooses one.
// Tested by tests/ops/nn/embedding_test.cc
#ifndef STRATA_OPS_NN_EMBEDDING_KERNELS_H_
#define STRATA_OPS_NN_EMBEDDING_KERNELS_H_

#include <cstdint>

#include "ops/coalesce_sum.h"
#include "ops/nn/embedding_types.h"
#include "ops/nn/sparse_examples.h"

namespace strata::ops {

#define STRATA_EMBEDDING_KERNELS                                                              \
  void GatherEmbeddings(const SparseExamples& x, uint32_t dim, uint32_t begin, uint32_t end,  \
                        const FieldMatrix& out, uint32_t* example);                           \
  void EmbeddingGradients(const SparseExamples& x, uint32_t dim, const FieldMatrix& gradient, \
                          const uint32_t* example, const KeyOccurrences& keys, float* out);   \
  void PoolRows(const SparseExamples& x, const FieldRuns& runs, uint32_t begin, uint32_t end, \
                float* out);                                                                  \
  void PooledGradients(const SparseExamples& x, const FieldRuns& runs, const float* gradient, \
                       const KeyOccurrences& keys, float* out);

namespace v3 {
STRATA_EMBEDDING_KERNELS
}
namespace v4 {
STRATA_EMBEDDING_KERNELS
}

#undef STRATA_EMBEDDING_KERNELS

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_EMBEDDING_KERNELS_H_
