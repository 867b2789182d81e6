#include "ops/optimizer.h"

#include <cmath>

#include "ops/cpu_features.h"
#include "ops/optimizer_kernels.h"

namespace strata::ops {

uint32_t StateFloats(OptimizerKind kind, uint32_t dim) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return 0;
    case OptimizerKind::kAdagrad:
      return dim;
    case OptimizerKind::kAdam:
      return 2 * dim;
  }
  return 0;
}

void InitState(const OptimizerConfig& config, uint32_t dim, float* state) {
  const float value = config.kind == OptimizerKind::kAdagrad ? config.initial_accumulator : 0.0f;
  const uint32_t n = StateFloats(config.kind, dim);
  for (uint32_t i = 0; i < n; ++i) state[i] = value;
}

float AdamPowers::Correction(uint64_t t) {
  if (t < t_) {
    power1_ = power2_ = 1.0;
    t_ = 0;
  }
  while (t_ < t) {
    const double next1 = power1_ * beta1_;
    const double next2 = power2_ * beta2_;
    // Powers that no longer change (0, or the least denormal) never will: a restart at a late step
    // need not count up to it.
    const bool settled = next1 == power1_ && next2 == power2_;
    power1_ = next1;
    power2_ = next2;
    t_ = settled ? t : t_ + 1;
  }
  // sqrt is correctly rounded everywhere, unlike exp, log and pow.
  return static_cast<float>(std::sqrt(1.0 - power2_) / (1.0 - power1_));
}

size_t ApplyRows(const OptimizerConfig& config, const StepScalars& scalars, uint32_t dim, size_t n,
                 float* const* weights, float* const* states, const float* gradient_sums,
                 size_t gradient_stride, uint8_t* refused) {
  ApplyArguments a;
  a.dim = dim;
  a.n = n;
  a.weights = weights;
  a.states = states;
  a.gradient_sums = gradient_sums;
  a.gradient_stride = gradient_stride;
  a.refused = refused;
  a.examples = scalars.examples;
  a.rate = scalars.learning_rate;
  a.epsilon = config.epsilon;
  a.beta1 = config.beta1;
  a.beta2 = config.beta2;
  const bool wide = ActiveIsaLevel() == IsaLevel::kV4;
  switch (config.kind) {
    case OptimizerKind::kSgd:
      return wide ? v4::ApplySgd(a) : v3::ApplySgd(a);
    case OptimizerKind::kAdagrad:
      return wide ? v4::ApplyAdagrad(a) : v3::ApplyAdagrad(a);
    case OptimizerKind::kAdam:
      a.rate = scalars.learning_rate * scalars.adam_correction;
      return wide ? v4::ApplyAdam(a) : v3::ApplyAdam(a);
  }
  return 0;
}

}  // namespace strata::ops
