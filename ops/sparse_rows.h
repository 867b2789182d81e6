// A list of rows by position.
// Tested by tests/ops/row_sum_test.cc
#ifndef STRATA_OPS_SPARSE_ROWS_H_
#define STRATA_OPS_SPARSE_ROWS_H_

#include <cstddef>
#include <cstdint>

namespace strata::ops {

// The arrays belong to the caller.
struct SparseRows {
  const uint64_t* positions = nullptr;  // (n), strictly ascending
  const float* values = nullptr;        // (n, dim)
  size_t n = 0;
};

}  // namespace strata::ops

#endif  // STRATA_OPS_SPARSE_ROWS_H_
