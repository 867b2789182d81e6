// Embeddings of examples by field and the rows' gradients on a device: ops/nn/embedding.h's and
// LinearForward of ops/nn/fm.h, to the bit. All pointers are in device memory; everything is
// asynchronous.
#ifndef STRATA_OPS_CUDA_NN_EMBEDDING_H_
#define STRATA_OPS_CUDA_NN_EMBEDDING_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/nn/layers.h"
#include "ops/cuda/rows/coalesce.h"
#include "ops/nn/embedding_types.h"
#include "ops/nn/sparse_examples.h"

namespace strata::ops::gpu {

// out: value times the first dim floats of the row of each field's feature; zeros for fields that
// an example lacks. example: (features), the example each belongs to.
absl::Status GatherEmbeddings(CudaApi& api, const SparseExamples& x, uint32_t examples,
                              uint32_t dim, const FieldMatrix& out, uint32_t* example,
                              StreamHandle stream);

// First order terms: each task has a weight at a column of its own of a row.
struct LinearTask {
  uint32_t column = 0, tasks = 1;         // task t: column + t
  const float* bias = nullptr;            // (tasks)
  const float* numeric_weight = nullptr;  // (x.numeric_count, tasks)
};
// logits (examples, tasks): bias + sum w x + sum numeric_weight x. example: as above, or null: not
// written.
absl::Status LinearForward(CudaApi& api, const SparseExamples& x, uint32_t examples,
                           const LinearTask& task, const Matrix& logits, uint32_t* example,
                           StreamHandle stream);

// Where the gradients of rows go: row u stands at rows + u * stride.
struct RowSums {
  float* rows = nullptr;
  size_t stride = 0;  // floats
};

// Per feature: x times the vector of its field in `gradient` (zeros beyond its fields); sums of
// dim floats by `grouped`.
absl::Status EmbeddingGradients(CudaApi& api, const Coalescer& coalescer,
                                const GroupedKeys& grouped, const SparseExamples& x, uint32_t dim,
                                const FieldMatrix& gradient, const uint32_t* example,
                                const RowSums& out, StreamHandle stream);

// Per feature: x times its example's gradients (examples, tasks): sums of `tasks` floats.
absl::Status WeightGradients(CudaApi& api, const Coalescer& coalescer, const GroupedKeys& grouped,
                             const SparseExamples& x, const Matrix& gradients, uint32_t tasks,
                             const uint32_t* example, const RowSums& out, StreamHandle stream);

// The gradients by pooled rows, on to the rows that they are sums of. Per feature: its value (1
// where values is null) times the row of its run in `gradient` (runs, dim).
absl::Status PooledGradients(CudaApi& api, const Coalescer& coalescer, const GroupedKeys& grouped,
                             const float* values, const uint32_t* run_of, const float* gradient,
                             uint32_t dim, const RowSums& out, StreamHandle stream);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_NN_EMBEDDING_H_
