#include "ops/nn/losses.h"

#include "ops/exact_math.h"

namespace strata::ops {
namespace {

struct Output {
  float prediction, loss, gradient;
};

template <LossKind kKind>
inline float Predict(float z) {
  if (kKind == LossKind::kLogistic) return exact::Sigmoid(z);
  return kKind == LossKind::kPoisson ? exact::Exp(z) : z;
}

template <LossKind kKind>
inline Output OutputOf(float z, float y, float delta) {
  const float p = Predict<kKind>(z);
  const float r = p - y;
  if (kKind == LossKind::kLogistic) return {p, exact::LogLoss(z, y), r};
  if (kKind == LossKind::kPoisson) return {p, p - y * z, r};
  const float size = exact::Abs(r);
  if (kKind == LossKind::kSquared || size <= delta) return {p, 0.5f * r * r, r};
  return {p, delta * (size - 0.5f * delta), r < 0.0f ? -delta : delta};
}

template <LossKind kKind>
void PredictAll(size_t n, const float* sums, float* predictions, size_t stride) {
  for (size_t i = 0; i < n; ++i) predictions[i * stride] = Predict<kKind>(sums[i]);
}

template <LossKind kKind>
void ComputeAll(const Loss& loss, const TaskExamples& x, float* predictions, size_t stride,
                float* losses, float* gradients) {
  for (size_t i = 0; i < x.n; ++i) {
    const float y = x.labels[i * x.label_stride];
    const Output out = OutputOf<kKind>(x.sums[i], y, loss.delta);
    const float weight = x.weights != nullptr ? x.weights[i] : 1.0f;
    const bool known = y == y;
    predictions[i * stride] = out.prediction;
    // A weight of nothing takes an infinite loss away too: the example counts for nothing.
    const bool counts = known && weight > 0.0f;
    losses[i] = counts ? out.loss * loss.weight * weight : 0.0f;
    gradients[i] = counts ? out.gradient * loss.weight * weight : 0.0f;
  }
}

}  // namespace

void TaskPredictions(LossKind kind, size_t n, const float* sums, float* predictions,
                     size_t stride) {
  switch (kind) {
    case LossKind::kLogistic:
      return PredictAll<LossKind::kLogistic>(n, sums, predictions, stride);
    case LossKind::kPoisson:
      return PredictAll<LossKind::kPoisson>(n, sums, predictions, stride);
    case LossKind::kSquared:
    case LossKind::kHuber:
      return PredictAll<LossKind::kSquared>(n, sums, predictions, stride);
  }
}

void TaskLosses(const Loss& loss, const TaskExamples& x, float* predictions, size_t stride,
                float* losses, float* gradients) {
  switch (loss.kind) {
    case LossKind::kLogistic:
      return ComputeAll<LossKind::kLogistic>(loss, x, predictions, stride, losses, gradients);
    case LossKind::kSquared:
      return ComputeAll<LossKind::kSquared>(loss, x, predictions, stride, losses, gradients);
    case LossKind::kPoisson:
      return ComputeAll<LossKind::kPoisson>(loss, x, predictions, stride, losses, gradients);
    case LossKind::kHuber:
      return ComputeAll<LossKind::kHuber>(loss, x, predictions, stride, losses, gradients);
  }
}

}  // namespace strata::ops
