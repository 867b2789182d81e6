// A batch of examples whose features point into a matrix of rows.
// Tested by tests/ops/nn/embedding_test.cc, tests/ops/nn/fm_test.cc
#ifndef STRATA_OPS_NN_SPARSE_EXAMPLES_H_
#define STRATA_OPS_NN_SPARSE_EXAMPLES_H_

#include <cstddef>
#include <cstdint>

namespace strata::ops {

// Plain types: kernels of every instruction set include this. The arrays belong to the caller.
struct SparseExamples {
  const uint32_t* offsets = nullptr;  // (examples + 1): features of example i
  const uint32_t* row = nullptr;      // (features): row of each
  const float* values = nullptr;      // (features), or null when every value is 1
  const float* rows = nullptr;        // (unique, stride)
  size_t stride = 0;                  // floats
  const float* numeric = nullptr;     // (examples, numeric_count)
  uint32_t numeric_count = 0;
  // (features): field of each, strictly ascending within an example, or null when it is the
  // feature's ordinal in its example.
  const uint32_t* fields = nullptr;
};

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_SPARSE_EXAMPLES_H_
