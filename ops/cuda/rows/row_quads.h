// The quads of a row that one lane of a group works on: quads round + lane, then kLanes apart.
// Tested by tests/ops/cuda/rows/lanes_test.cc
#ifndef STRATA_OPS_CUDA_ROWS_ROW_QUADS_H_
#define STRATA_OPS_CUDA_ROWS_ROW_QUADS_H_

#include <cstdint>

#include "ops/cuda/kernel/vector4.h"
#include "ops/cuda/rows/apply_plan.h"
#include "ops/exact_math.h"
#include "ops/inline.h"
#include "ops/optimizer_rules.h"

namespace strata::ops::gpu {

struct TableRow {
  const float* sums = nullptr;
  float* weights = nullptr;
  float* state = nullptr;
};

// Floats of quad `quad` of a row of dim: 0 beyond its end, at least 4 before its last.
STRATA_HD uint32_t FloatsFrom(uint32_t quad, uint32_t dim) {
  return quad * 4 < dim ? dim - quad * 4 : 0;
}

template <uint32_t kStates, uint32_t kQuads>
struct RowQuads {
  Vector4 sums[kQuads], weights[kQuads];
  Vector4 first[kStates >= 1 ? kQuads : 1], second[kStates >= 2 ? kQuads : 1];

  // Adam's and ftrl's second state begins right after the first.
  STRATA_HD_MEMBER static bool SecondAligned(const ApplyPlan& plan) {
    return plan.aligned && plan.task.dim % 4 == 0;
  }

  template <typename Group>
  STRATA_HD_MEMBER void Load(const Group& group, const ApplyPlan& plan, const TableRow& row,
                             uint32_t round) {
    STRATA_UNROLL
    for (uint32_t v = 0; v < kQuads; ++v) {
      const uint32_t quad = round + v * Group::kLanes + group.lane();
      const uint32_t n = FloatsFrom(quad, plan.task.dim);
      sums[v] = LoadConst4(row.sums + quad * 4, n, plan.aligned);
      weights[v] = Load4(row.weights + quad * 4, n, plan.aligned);
      if constexpr (kStates >= 1) first[v] = Load4(row.state + quad * 4, n, plan.aligned);
      if constexpr (kStates >= 2) {
        second[v] = Load4(row.state + plan.task.dim + quad * 4, n, SecondAligned(plan));
      }
    }
  }

  template <typename Group>
  STRATA_HD_MEMBER void Store(const Group& group, const ApplyPlan& plan, const TableRow& row,
                              uint32_t round) const {
    STRATA_UNROLL
    for (uint32_t v = 0; v < kQuads; ++v) {
      const uint32_t quad = round + v * Group::kLanes + group.lane();
      const uint32_t n = FloatsFrom(quad, plan.task.dim);
      Store4(weights[v], row.weights + quad * 4, n, plan.aligned);
      if constexpr (kStates >= 1) Store4(first[v], row.state + quad * 4, n, plan.aligned);
      if constexpr (kStates >= 2) {
        Store4(second[v], row.state + plan.task.dim + quad * 4, n, SecondAligned(plan));
      }
    }
  }

  // The largest magnitude among sums / examples.
  template <typename Group>
  STRATA_HD_MEMBER uint32_t WorstSum(const Group& group, const ApplyPlan& plan, uint32_t round,
                                     float examples) const {
    uint32_t worst = 0;
    STRATA_UNROLL
    for (uint32_t v = 0; v < kQuads; ++v) {
      const uint32_t n = FloatsFrom(round + v * Group::kLanes + group.lane(), plan.task.dim);
      for (uint32_t d = 0; d < 4; ++d) {
        const uint32_t magnitude = rules::Magnitude(exact::Div(sums[v].at[d], examples));
        worst = d < n ? rules::Max(worst, magnitude) : worst;
      }
    }
    return worst;
  }
};

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_ROWS_ROW_QUADS_H_
