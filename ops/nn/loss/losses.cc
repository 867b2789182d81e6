#include "ops/nn/loss/losses.h"

namespace strata::ops {
namespace {

template <LossKind kKind>
void PredictAll(const Loss& of, size_t n, const float* sums, float* predictions, size_t stride) {
  const Loss loss = {kKind, of.weight, of.delta, of.offset};
  for (size_t i = 0; i < n; ++i) predictions[i * stride] = TaskPrediction(loss, sums[i]);
}

template <LossKind kKind>
void ComputeAll(const Loss& of, const TaskExamples& x, float* predictions, size_t stride,
                float* losses, float* gradients) {
  const Loss loss = {kKind, of.weight, of.delta, of.offset};
  const float scale = x.weights != nullptr ? x.weight_scale : 1.0f;
  for (size_t i = 0; i < x.n; ++i) {
    const float weight = x.weights != nullptr ? x.weights[i] : 1.0f;
    const LossOutput out =
        WeightedLoss(loss, x.sums[i], x.labels[i * x.label_stride], weight, scale);
    predictions[i * stride] = out.prediction;
    losses[i] = out.loss;
    gradients[i] = out.gradient;
  }
}

}  // namespace

void TaskPredictions(const Loss& loss, size_t n, const float* sums, float* predictions,
                     size_t stride) {
  switch (loss.kind) {
    case LossKind::kLogistic:
      return PredictAll<LossKind::kLogistic>(loss, n, sums, predictions, stride);
    case LossKind::kPoisson:
      return PredictAll<LossKind::kPoisson>(loss, n, sums, predictions, stride);
    case LossKind::kSquared:
    case LossKind::kHuber:
      return PredictAll<LossKind::kSquared>(loss, n, sums, predictions, stride);
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
