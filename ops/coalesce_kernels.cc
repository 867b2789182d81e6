// Built once per instruction set: no inline std or Abseil code here (isa.bzl).
#include "ops/coalesce_kernels.h"

namespace strata::ops::STRATA_ISA {
namespace {

// A row of one element that was computed, as something to index.
struct Single {
  float value;
  float operator[](uint32_t) const { return value; }
};

}  // namespace

void CoalesceRows(const KeyOccurrences& keys, uint32_t dim, const float* gradients,
                  size_t gradient_stride, float* sums, size_t sum_stride) {
  const auto rows = [=](uint32_t feature, uint32_t) {
    return gradients + feature * gradient_stride;
  };
  const uint32_t lines = dim < 64 ? dim : 64;  // the hardware follows longer rows by itself
  const auto prefetch = [=](uint32_t feature) {
    const float* row = gradients + feature * gradient_stride;
    for (uint32_t d = 0; d < lines; d += 16) __builtin_prefetch(row + d, 0, 3);
    __builtin_prefetch(row + lines - 1, 0, 3);
  };
  CoalesceSum(keys, dim, rows, prefetch, sums, sum_stride);
}

void CoalesceScaled(const KeyOccurrences& keys, const uint32_t* example, const float* gradient,
                    const float* values, float* sums, size_t sum_stride) {
  const auto prefetch = [=](uint32_t feature) { __builtin_prefetch(example + feature, 0, 3); };
  if (values == nullptr) {
    const auto rows = [=](uint32_t feature, uint32_t) {
      return Single{gradient[example[feature]]};
    };
    CoalesceSum(keys, 1, rows, prefetch, sums, sum_stride);
  } else {
    const auto rows = [=](uint32_t feature, uint32_t) {
      return Single{gradient[example[feature]] * values[feature]};
    };
    CoalesceSum(keys, 1, rows, prefetch, sums, sum_stride);
  }
}

}  // namespace strata::ops::STRATA_ISA
