// One example's loss and its derivative (losses.h), for every build of its kernels.
// Tested by tests/ops/nn/loss/losses_test.cc, tests/ops/cuda/nn/losses_test.cc
#ifndef STRATA_OPS_NN_LOSS_LOSS_TERMS_H_
#define STRATA_OPS_NN_LOSS_LOSS_TERMS_H_

#include <cstdint>

#include "ops/exact_math.h"
#include "ops/inline.h"

namespace strata::ops {

enum class LossKind : uint8_t { kLogistic, kSquared, kPoisson, kHuber };

// What begins as 0 has predictions far from labels of another mean: `offset` is what a sum of 0
// stands for.
struct Loss {
  LossKind kind = LossKind::kLogistic;
  float weight = 1.0f;   // of the loss and of its derivative
  float delta = 1.0f;    // kHuber
  float offset = -0.0f;  // added to a model's sum; -0 leaves every sum its bits, a sum of -0 too
};

struct LossOutput {
  float prediction, loss, gradient;
};

STRATA_HD float BarePrediction(LossKind kind, float z) {
  if (kind == LossKind::kLogistic) return exact::Sigmoid(z);
  return kind == LossKind::kPoisson ? exact::Exp(z) : z;
}

// Of a model's sum.
STRATA_HD float TaskPrediction(const Loss& loss, float sum) {
  return BarePrediction(loss.kind, sum + loss.offset);
}

STRATA_HD LossOutput BareLoss(LossKind kind, float z, float y, float delta) {
  const float p = BarePrediction(kind, z);
  const float r = p - y;
  if (kind == LossKind::kLogistic) return {p, exact::LogLoss(z, y), r};
  if (kind == LossKind::kPoisson) return {p, p - y * z, r};
  const float size = exact::Abs(r);
  if (kind == LossKind::kSquared || size <= delta) return {p, 0.5f * r * r, r};
  // No number stays none: a row must not learn of it.
  return {p, delta * (size - 0.5f * delta), r < 0.0f ? -delta : r > 0.0f ? delta : r};
}

// With both weights; in the derivative the example's counts `scale` times, which a loss that is a
// square has no room for. An example without a label (y is no number) has no loss; a weight of
// nothing takes an infinite loss away too: the example counts for nothing.
STRATA_HD LossOutput WeightedLoss(const Loss& loss, float sum, float y, float weight, float scale) {
  const LossOutput bare = BareLoss(loss.kind, sum + loss.offset, y, loss.delta);
  const bool counts = y == y && weight > 0.0f;
  return {bare.prediction, counts ? bare.loss * loss.weight * weight : 0.0f,
          counts ? bare.gradient * loss.weight * (weight * scale) : 0.0f};
}

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_LOSS_LOSS_TERMS_H_
