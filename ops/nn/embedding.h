// Embeddings of examples, pooled and laid out by field, and the rows' gradients. Vectors of rows
// are their first dim floats; dim <= 4096. Features of fields beyond the matrix take no part. Any
// thread; results do not depend on how examples and keys are split.
#ifndef STRATA_OPS_NN_EMBEDDING_H_
#define STRATA_OPS_NN_EMBEDDING_H_

#include <cstdint>

#include "ops/coalesce_sum.h"
#include "ops/nn/embedding_types.h"
#include "ops/nn/sparse_examples.h"

namespace strata::ops {

// out = v x of each feature of examples begin .. end - 1; zeros for fields that an example lacks.
// example (features): the example that each belongs to; not written when null.
void GatherEmbeddings(const SparseExamples& x, uint32_t dim, uint32_t begin, uint32_t end,
                      const FieldMatrix& out, uint32_t* example);

// Gradient sums of keys.begin .. keys.end - 1 in the order of EXACT.md rule 6: out (unique,
// stride) with x's stride, its first dim columns. Per feature: x times the vector of its field in
// `gradient`, the derivatives by GatherEmbeddings' out.
void EmbeddingGradients(const SparseExamples& x, uint32_t dim, const FieldMatrix& gradient,
                        const uint32_t* example, const KeyOccurrences& keys, float* out);

// Sums of value times row over runs begin .. end - 1: out (runs, x.stride), all columns. In the
// order of features; the first initialises (EXACT.md rule 6), each further one is a fma.
void PoolRows(const SparseExamples& x, const FieldRuns& runs, uint32_t begin, uint32_t end,
              float* out);

// Gradient sums of keys.begin .. keys.end - 1 in the order of EXACT.md rule 6: out (unique,
// x.stride). Per feature: x times its run's row of `gradient` (runs, x.stride), the derivatives by
// PoolRows' out.
void PooledGradients(const SparseExamples& x, const FieldRuns& runs, const float* gradient,
                     const KeyOccurrences& keys, float* out);

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_EMBEDDING_H_
