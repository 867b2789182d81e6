// Vectors of fields whose tables differ in width, and of sequences, as one row of a matrix for each
// example, and the rows' gradients, on a device: ops/nn/field_vectors.h, to the bit. All pointers
// are in device memory; everything is asynchronous.
#ifndef STRATA_OPS_CUDA_NN_FIELD_VECTORS_H_
#define STRATA_OPS_CUDA_NN_FIELD_VECTORS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/rows/coalesce.h"
#include "ops/cuda/rows/row_runs.h"
#include "ops/nn/field_vectors.h"

namespace strata::ops::gpu {

// Where the vectors of a field are from, and where they stand in an example's row.
struct FieldColumns {
  static constexpr uint32_t kNoSequence = ~0u;

  uint32_t table = 0;
  uint32_t column = 0;  // of a sequence: of its first value
  uint32_t sequence = kNoSequence;
  uint32_t max = 0;  // 1: pooled by the greatest of each element
};

// What a batch's features are.
struct FeatureList {
  uint32_t examples = 0;
  const uint32_t* offsets = nullptr;  // (examples + 1)
  const uint32_t* key = nullptr;      // (features)
  const uint32_t* fields = nullptr;   // (features), or null: their ordinals
  const FieldColumns* columns = nullptr;
  uint32_t known_fields = 0;                 // (columns); features of others stand nowhere
  const uint32_t* sequence_first = nullptr;  // (examples, sequences): the first value's feature
  uint32_t sequences = 0;
  RowRuns runs;
};
// places (features), and example (features): that each belongs to.
absl::Status PlaceFeatures(CudaApi& api, const FeatureList& list, FeaturePlace* places,
                           uint32_t* example, StreamHandle stream);

// The vectors of all examples, and zeros in the first `cleared` columns that no feature stands at.
// most_dim: of a feature.
absl::Status GatherVectors(CudaApi& api, const VectorExamples& x, uint32_t examples,
                           uint32_t most_dim, uint32_t cleared, const VectorMatrix& out,
                           StreamHandle stream);

// Gradient sums of all keys; sums: their rows, as `runs` has them.
absl::Status VectorGradients(CudaApi& api, const Coalescer& coalescer, const GroupedKeys& grouped,
                             const VectorExamples& x, const VectorMatrix& gradient,
                             const uint32_t* example, const RowRuns& runs, float* sums,
                             StreamHandle stream);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_NN_FIELD_VECTORS_H_
