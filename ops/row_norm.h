// A sum over a row's elements (EXACT.md rule 5), for kernels of any instruction set.
// Tested by tests/ops/optimizer_test.cc, tests/ops/cuda/rows/lanes_test.cc
#ifndef STRATA_OPS_ROW_NORM_H_
#define STRATA_OPS_ROW_NORM_H_

#include <cstdint>

#include "ops/inline.h"

namespace strata::ops {

// The sum of (sums[d] / divisor * scale)^2: 16 accumulators, element d goes to accumulator d mod
// 16, ascending, by fma; then folded 8, 4, 2, 1.
STRATA_HD float SumOfSquares(const float* sums, float divisor, float scale, uint32_t dim) {
  constexpr uint32_t kLanes = 16;
  float lanes[kLanes] = {};
  uint32_t d = 0;
  for (; d + kLanes <= dim; d += kLanes) {
    for (uint32_t l = 0; l < kLanes; ++l) {
      const float x = sums[d + l] / divisor * scale;
      lanes[l] = __builtin_fmaf(x, x, lanes[l]);
    }
  }
  for (uint32_t l = 0; d + l < dim; ++l) {
    const float x = sums[d + l] / divisor * scale;
    lanes[l] = __builtin_fmaf(x, x, lanes[l]);
  }
  for (uint32_t half = kLanes / 2; half >= 1; half /= 2) {
    for (uint32_t l = 0; l < half; ++l) lanes[l] = lanes[l] + lanes[l + half];
  }
  return lanes[0];
}

}  // namespace strata::ops

#endif  // STRATA_OPS_ROW_NORM_H_
