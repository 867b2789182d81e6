#include "ops/coalesce.h"

#include "ops/coalesce_kernels.h"
#include "ops/cpu_features.h"

namespace strata::ops {

void CoalesceRows(const KeyOccurrences& keys, uint32_t dim, const float* gradients,
                  size_t gradient_stride, float* sums, size_t sum_stride) {
  const auto kernel = ActiveIsaLevel() == IsaLevel::kV4 ? v4::CoalesceRows : v3::CoalesceRows;
  kernel(keys, dim, gradients, gradient_stride, sums, sum_stride);
}

void CoalesceScaled(const KeyOccurrences& keys, const uint32_t* example, const float* gradient,
                    const float* values, float* sums, size_t sum_stride) {
  const auto kernel = ActiveIsaLevel() == IsaLevel::kV4 ? v4::CoalesceScaled : v3::CoalesceScaled;
  kernel(keys, example, gradient, values, sums, sum_stride);
}

uint32_t CoalesceSplit(const uint32_t* first, uint32_t unique, uint32_t parts, uint32_t part) {
  // A key costs about as much as an occurrence. first[u] + u ascends: binary search.
  const uint64_t total = uint64_t{first[unique]} - first[0] + unique;
  const uint64_t target = total * part / parts;
  uint32_t low = 0, high = unique;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (uint64_t{first[middle]} - first[0] + middle < target) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace strata::ops
