// The instruction-set builds of row_sum.h; row_sum.cc chooses one.
// Tested by tests/ops/row_sum_test.cc
#ifndef STRATA_OPS_ROW_SUM_KERNELS_H_
#define STRATA_OPS_ROW_SUM_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "ops/sparse_rows.h"

namespace strata::ops {

namespace v3 {
size_t MergeRowSums(const SparseRows& left, const SparseRows& right, uint32_t dim,
                    uint64_t* out_positions, float* out_values);
void AddFloats(const float* left, const float* right, size_t n, float* out);
}  // namespace v3

namespace v4 {
size_t MergeRowSums(const SparseRows& left, const SparseRows& right, uint32_t dim,
                    uint64_t* out_positions, float* out_values);
void AddFloats(const float* left, const float* right, size_t n, float* out);
}  // namespace v4

}  // namespace strata::ops

#endif  // STRATA_OPS_ROW_SUM_KERNELS_H_
