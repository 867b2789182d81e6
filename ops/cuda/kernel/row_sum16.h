// Sums over a row's elements by the lanes of a group (EXACT.md rule 5): element d goes to
// accumulator d mod 16, ascending; then folded 8, 4, 2, 1. Four lanes hold four accumulators each,
// one lane all sixteen. In groups of more lanes, every four of them compute the same sum.
// Tested by tests/ops/cuda/rows/lanes_test.cc
#ifndef STRATA_OPS_CUDA_KERNEL_ROW_SUM16_H_
#define STRATA_OPS_CUDA_KERNEL_ROW_SUM16_H_

#include <cstdint>

#include "ops/cuda/kernel/vector4.h"
#include "ops/exact_math.h"
#include "ops/inline.h"

namespace strata::ops::gpu {

// Accumulators of one lane. REQUIRES: Group::kLanes is 1 or at least 4.
template <typename Group>
struct RowSum16 {
  static_assert(Group::kLanes == 1 || Group::kLanes >= 4);
  static constexpr uint32_t kQuads = Group::kLanes == 1 ? 4 : 1;  // of accumulators

  float lanes[kQuads * 4] = {};

  // The quads of a row that this lane adds: First, First + kStep, ...; ascending.
  static constexpr uint32_t kStep = Group::kLanes == 1 ? 1 : 4;
  STRATA_HD_MEMBER static uint32_t First(const Group& group) { return group.lane() % kStep; }

  // x[d] of quad `quad` for d < n, as the sum's terms by fma: x^2.
  STRATA_HD_MEMBER void AddSquares(uint32_t quad, const Vector4& x, uint32_t n) {
    const uint32_t at = kQuads == 1 ? 0 : quad % 4;
    STRATA_UNROLL
    for (uint32_t q = 0; q < kQuads; ++q) {
      STRATA_UNROLL
      for (uint32_t d = 0; d < 4; ++d) {
        if (q == at && d < n) lanes[q * 4 + d] = exact::Fma(x.at[d], x.at[d], lanes[q * 4 + d]);
      }
    }
  }

  // Adds terms that were rounded before.
  STRATA_HD_MEMBER void Add(uint32_t quad, const Vector4& x, uint32_t n) {
    const uint32_t at = kQuads == 1 ? 0 : quad % 4;
    STRATA_UNROLL
    for (uint32_t q = 0; q < kQuads; ++q) {
      STRATA_UNROLL
      for (uint32_t d = 0; d < 4; ++d) {
        if (q == at && d < n) lanes[q * 4 + d] = lanes[q * 4 + d] + x.at[d];
      }
    }
  }

  // The sum, for every lane.
  STRATA_HD_MEMBER float Fold(const Group& group) const {
    float x[4];
    if constexpr (kQuads == 4) {
      float half[8];
      for (uint32_t l = 0; l < 8; ++l) half[l] = lanes[l] + lanes[l + 8];
      for (uint32_t l = 0; l < 4; ++l) x[l] = half[l] + half[l + 4];
    } else {
      for (uint32_t l = 0; l < 4; ++l) x[l] = lanes[l] + group.FromXor(lanes[l], 2);
      for (uint32_t l = 0; l < 4; ++l) x[l] = x[l] + group.FromXor(x[l], 1);
    }
    return (x[0] + x[2]) + (x[1] + x[3]);
  }
};

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_KERNEL_ROW_SUM16_H_
