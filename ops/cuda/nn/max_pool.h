// Fields that are pooled to the greatest of each element, on a device: MaxPoolRow and
// MaxPoolGradients of ops/nn/max_pool.h, to the bit. All pointers are in device memory; everything
// is asynchronous.
#ifndef STRATA_OPS_CUDA_NN_MAX_POOL_H_
#define STRATA_OPS_CUDA_NN_MAX_POOL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/kernel/row_block.h"
#include "ops/cuda/nn/embedding.h"
#include "ops/cuda/rows/coalesce.h"
#include "ops/inline.h"
#include "ops/nn/sparse_examples.h"

namespace strata::ops::gpu {

// Runs of features of one field in one example, and which fields are pooled by max.
struct MaxRuns {
  const uint32_t* first = nullptr;  // (runs + 1): features of each
  const uint32_t* field = nullptr;  // (runs)
  Count runs;
  const uint32_t* max_fields = nullptr;  // (fields): 1, or 0; fields beyond are not
  uint32_t fields = 0;

  // Of one feature there is nothing to choose.
  STRATA_HD_MEMBER bool IsMax(uint32_t run) const {
    return first[run + 1] - first[run] > 1 && field[run] < fields && max_fields[field[run]] != 0;
  }
};

// Of max runs, and of these alone: out (runs, dim) is the greatest of each element over the run's
// rows, whose values are not read; from (runs, dim): which feature gives it, the first of equal
// ones. from may be null.
absl::Status MaxPool(CudaApi& api, const SparseExamples& x, const MaxRuns& runs, uint32_t dim,
                     float* out, uint32_t* from, StreamHandle stream);

// As PooledGradients (embedding.h), but that the gradient by an element of a max run goes to the
// feature that `from` names, and none to the others.
absl::Status MaxPooledGradients(CudaApi& api, const Coalescer& coalescer,
                                const GroupedKeys& grouped, const float* values,
                                const uint32_t* run_of, const MaxRuns& runs, const uint32_t* from,
                                const float* gradient, uint32_t dim, const RowSums& out,
                                StreamHandle stream);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_NN_MAX_POOL_H_
