#include "worker/step/local_optimizer.h"

#include "ops/optimizer_of.h"

namespace strata {
LocalOptimizer::LocalOptimizer(const TableSpec& table) {
  for (const SegmentSpec& segment : table.segments) {
    const ops::OptimizerConfig config = ops::OptimizerOf(segment.optimizer);
    segments_.push_back({config, ops::ScalarSource(config), segment.dim, dim_, state_floats_});
    dim_ += segment.dim;
    state_floats_ += ops::StateFloats(config.kind, segment.dim);
  }
}

void LocalOptimizer::InitState(float* state) const {
  for (const Segment& s : segments_) ops::InitState(s.config, s.dim, state + s.state_offset);
}

LocalOptimizer::Counts LocalOptimizer::Apply(uint64_t step, uint64_t examples, size_t n,
                                             float* const* rows, float* const* states,
                                             const float* sums) {
  weights_.resize(n);
  states_.assign(n, nullptr);
  outcome_.resize(n);
  row_outcome_.assign(n, 0);
  for (Segment& s : segments_) {
    for (size_t i = 0; i < n; ++i) {
      weights_[i] = rows[i] + s.weight_offset;
      if (state_floats_ > 0) states_[i] = states[i] + s.state_offset;
    }
    ops::ApplyRows(s.config, s.scalars.At(step, examples), s.dim, n, weights_.data(),
                   states_.data(), sums + s.weight_offset, dim_, outcome_.data());
    for (size_t i = 0; i < n; ++i) row_outcome_[i] |= static_cast<uint8_t>(1u << outcome_[i]);
  }
  Counts counts;
  for (const uint8_t outcome : row_outcome_) {
    counts.refused += (outcome & (1u << ops::kRowRefused)) != 0;
    counts.clipped += (outcome & (1u << ops::kRowClipped)) != 0;
  }
  return counts;
}

}  // namespace strata
