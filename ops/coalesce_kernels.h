// The instruction-set builds of coalesce.h; coalesce.cc chooses one.
// Tested by tests/ops/coalesce_test.cc
#ifndef STRATA_OPS_COALESCE_KERNELS_H_
#define STRATA_OPS_COALESCE_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "ops/coalesce_sum.h"

namespace strata::ops {

namespace v3 {
void CoalesceRows(const KeyOccurrences& keys, uint32_t dim, const float* gradients,
                  size_t gradient_stride, float* sums, size_t sum_stride);
void CoalesceScaled(const KeyOccurrences& keys, const uint32_t* example, const float* gradient,
                    const float* values, float* sums, size_t sum_stride);
}  // namespace v3

namespace v4 {
void CoalesceRows(const KeyOccurrences& keys, uint32_t dim, const float* gradients,
                  size_t gradient_stride, float* sums, size_t sum_stride);
void CoalesceScaled(const KeyOccurrences& keys, const uint32_t* example, const float* gradient,
                    const float* values, float* sums, size_t sum_stride);
}  // namespace v4

}  // namespace strata::ops

#endif  // STRATA_OPS_COALESCE_KERNELS_H_
