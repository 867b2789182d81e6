#include "ops/optimizer.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/cpu_features.h"
#include "ops/gradient_kernels.h"
#include "ops/optimizer_kernels.h"

namespace strata::ops {
namespace {

// Floats of prepared gradients at a time: they stay in the first-level cache.
constexpr uint32_t kPreparedFloats = 4096;

size_t ApplyRule(const OptimizerConfig& config, const StepScalars& scalars, ApplyArguments& a) {
  const bool wide = ActiveIsaLevel() == IsaLevel::kV4;
  switch (config.kind) {
    case OptimizerKind::kSgd:
    case OptimizerKind::kAdd:
      return wide ? v4::ApplySgd(a) : v3::ApplySgd(a);
    case OptimizerKind::kMomentum:
      if (config.nesterov) return wide ? v4::ApplyNesterov(a) : v3::ApplyNesterov(a);
      return wide ? v4::ApplyMomentum(a) : v3::ApplyMomentum(a);
    case OptimizerKind::kRowwiseAdagrad:
      if (a.dim > 1) return wide ? v4::ApplyRowwiseAdagrad(a) : v3::ApplyRowwiseAdagrad(a);
      [[fallthrough]];  // the mean of one square is that square
    case OptimizerKind::kAdagrad:
      return wide ? v4::ApplyAdagrad(a) : v3::ApplyAdagrad(a);
    case OptimizerKind::kAdam:
      a.rate = scalars.learning_rate * scalars.adam_correction;
      return wide ? v4::ApplyAdam(a) : v3::ApplyAdam(a);
    case OptimizerKind::kFtrl:
      if (a.rate < kLeastFtrlRate) {
        a.rate = 0.0f;  // sgd at rate 0 refuses what ftrl refuses, and moves nothing
        return wide ? v4::ApplySgd(a) : v3::ApplySgd(a);
      }
      return wide ? v4::ApplyFtrl(a) : v3::ApplyFtrl(a);
  }
  return 0;
}

// Prepares the gradients of some rows, applies the rule to these rows, and goes on. A row that is
// refused for its gradient passes through: the rule refuses it.
size_t ApplyPrepared(const OptimizerConfig& config, const StepScalars& scalars,
                     const ApplyArguments& all) {
  const size_t rows = std::max<size_t>(1, kPreparedFloats / all.dim);
  std::vector<float> gradients(std::min(rows, all.n) * all.dim);
  std::vector<uint8_t> clipped(std::min(rows, all.n));
  size_t refused = 0;
  for (size_t at = 0; at < all.n; at += rows) {
    const size_t n = std::min(rows, all.n - at);
    PrepareArguments p;
    p.dim = all.dim;
    p.n = n;
    p.weights = all.weights + at;
    p.gradient_sums = all.gradient_sums + at * all.gradient_stride;
    p.gradient_stride = all.gradient_stride;
    p.examples = all.examples;
    p.clip_value = config.clip_value;
    p.clip_norm = config.clip_norm;
    p.weight_decay = config.weight_decay;
    p.gradients = gradients.data();
    p.clipped = clipped.data();
    ActiveIsaLevel() == IsaLevel::kV4 ? v4::PrepareGradients(p) : v3::PrepareGradients(p);
    ApplyArguments a = all;
    a.n = n;
    a.weights = all.weights + at;
    a.states = all.states == nullptr ? nullptr : all.states + at;
    a.gradient_sums = gradients.data();
    a.gradient_stride = all.dim;
    a.refused = all.refused == nullptr ? nullptr : all.refused + at;
    a.examples = 1.0f;
    refused += ApplyRule(config, scalars, a);
    for (size_t i = 0; a.refused != nullptr && i < n; ++i) {
      if (a.refused[i] == 0 && clipped[i] != 0) a.refused[i] = kRowClipped;
    }
  }
  return refused;
}

}  // namespace

uint32_t StateFloats(OptimizerKind kind, uint32_t dim) {
  switch (kind) {
    case OptimizerKind::kSgd:
    case OptimizerKind::kAdd:
      return 0;
    case OptimizerKind::kRowwiseAdagrad:
      return 1;
    case OptimizerKind::kAdagrad:
    case OptimizerKind::kMomentum:
      return dim;
    case OptimizerKind::kAdam:
    case OptimizerKind::kFtrl:
      return 2 * dim;
  }
  return 0;
}

void InitState(const OptimizerConfig& config, uint32_t dim, float* state) {
  const bool accumulates =
      config.kind == OptimizerKind::kAdagrad || config.kind == OptimizerKind::kRowwiseAdagrad;
  const float value = accumulates ? config.initial_accumulator : 0.0f;
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

ScalarSource::ScalarSource(const OptimizerConfig& config)
    : kind_(config.kind),
      base_rate_(config.learning_rate),
      schedule_(config.schedule),
      powers_(config.beta1, config.beta2) {}

void ScalarSource::CountFrom(uint64_t earlier) {
  earlier_ = earlier;
  number_ = 0;
}

StepScalars ScalarSource::At(uint64_t number, uint64_t examples) {
  if (number != number_) {
    number_ = number;
    scalars_.learning_rate =
        static_cast<float>(static_cast<double>(base_rate_) * ScheduleFactor(schedule_, number - 1));
    if (kind_ == OptimizerKind::kAdam) {
      scalars_.adam_correction = powers_.Correction(earlier_ + number);
    }
  }
  scalars_.examples = static_cast<float>(examples);
  return scalars_;
}

size_t ApplyRows(const OptimizerConfig& config, const StepScalars& scalars, uint32_t dim, size_t n,
                 float* const* weights, float* const* states, const float* gradient_sums,
                 size_t gradient_stride, uint8_t* outcomes) {
  ApplyArguments a;
  a.dim = dim;
  a.n = n;
  a.weights = weights;
  a.states = states;
  a.gradient_sums = gradient_sums;
  a.gradient_stride = gradient_stride;
  a.refused = outcomes;
  a.examples = scalars.examples;
  a.rate = scalars.learning_rate;
  a.epsilon = config.epsilon;
  a.beta1 = config.beta1;
  a.beta2 = config.beta2;
  a.momentum = config.momentum;
  a.beta = config.beta;
  a.l1 = config.l1;
  a.l2 = config.l2;
  if (config.kind == OptimizerKind::kAdd) {
    // fma(1, sum, w): their sum, rounded once.
    a.examples = 1.0f;
    a.rate = -1.0f;
    return ApplyRule(config, scalars, a);
  }
  const bool plain =
      config.clip_value == 0.0f && config.clip_norm == 0.0f && config.weight_decay == 0.0f;
  return plain || dim == 0 ? ApplyRule(config, scalars, a) : ApplyPrepared(config, scalars, a);
}

}  // namespace strata::ops
