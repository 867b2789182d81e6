// The optimizer of a lane's own copy of the weights (downpour's plain step, easgd's local step).
#ifndef STRATA_WORKER_STEP_LOCAL_OPTIMIZER_H_
#define STRATA_WORKER_STEP_LOCAL_OPTIMIZER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/optimizer.h"
#include "proto/core/table_spec.h"

namespace strata {

// The same arithmetic as where rows live (ops/optimizer.h), on rows and states that the caller
// keeps. One thread at a time.
class LocalOptimizer {
 public:
  // By the optimizers of the table's segments.
  explicit LocalOptimizer(const TableSpec& table);

  // Floats of a row's state, over all segments.
  uint32_t state_floats() const { return state_floats_; }
  // Fills the state of a row that was never updated: (state_floats).
  void InitState(float* state) const;

  // Rows of which a segment refused its gradient, as it or the result was not finite, or took less
  // than its gradient (clipNorm, clipValue).
  struct Counts {
    uint64_t refused = 0;
    uint64_t clipped = 0;
  };
  // One update of n distinct rows: rows[i] (dim), states[i] (state_floats), sums (n, dim) of
  // `examples` >= 1 examples. `step` counts from 1.
  Counts Apply(uint64_t step, uint64_t examples, size_t n, float* const* rows, float* const* states,
               const float* sums);

 private:
  struct Segment {
    ops::OptimizerConfig config;
    ops::ScalarSource scalars;
    uint32_t dim = 0;
    uint32_t weight_offset = 0;
    uint32_t state_offset = 0;
  };
  std::vector<Segment> segments_;
  uint32_t dim_ = 0;
  uint32_t state_floats_ = 0;
  std::vector<float*> weights_, states_;
  std::vector<uint8_t> outcome_, row_outcome_;
};

}  // namespace strata

#endif  // STRATA_WORKER_STEP_LOCAL_OPTIMIZER_H_
