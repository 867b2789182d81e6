// Rows of one field of one example, pooled to the greatest of each element. Nothing is rounded, so
// results depend on no instruction set.
#ifndef STRATA_OPS_NN_MAX_POOL_H_
#define STRATA_OPS_NN_MAX_POOL_H_

#include <cstdint>

#include "ops/nn/sparse_examples.h"

namespace strata::ops {

// Features first .. end - 1 of one run, at least one; their values are not read.
struct MaxRun {
  uint32_t first = 0;
  uint32_t end = 0;
};

// out (x.stride): the greatest of each element over the run's rows. `from` (x.stride): which
// feature gives it, the first of those that are equal; may be null. A number that is not one (NaN)
// is kept where it is the first feature's, else passed over.
void MaxPoolRow(const SparseExamples& x, MaxRun run, float* out, uint32_t* from);

// The derivatives by the rows of the run's features: out (end - first, x.stride) has, in the row of
// the feature that `from` names, the element of `gradient` (x.stride), and zeros elsewhere.
void MaxPoolGradients(const SparseExamples& x, MaxRun run, const uint32_t* from,
                      const float* gradient, float* out);

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_MAX_POOL_H_
