#include "ops/row_sum.h"

#include "ops/cpu_features.h"
#include "ops/row_sum_kernels.h"

namespace strata::ops {

size_t MergeRowSums(const SparseRows& left, const SparseRows& right, uint32_t dim,
                    uint64_t* out_positions, float* out_values) {
  const auto kernel = ActiveIsaLevel() == IsaLevel::kV4 ? v4::MergeRowSums : v3::MergeRowSums;
  return kernel(left, right, dim, out_positions, out_values);
}

void AddFloats(const float* left, const float* right, size_t n, float* out) {
  const auto kernel = ActiveIsaLevel() == IsaLevel::kV4 ? v4::AddFloats : v3::AddFloats;
  kernel(left, right, n, out);
}

}  // namespace strata::ops
