#include "ops/cuda/nn/logistic.h"

#include "ops/cuda/kernel/kernel.h"
#include "ops/exact_math.h"
#include "ops/inline.h"

namespace strata::ops::gpu {
namespace {

struct SigmoidEach {
  static constexpr uint32_t kLanes = 1;
  uint32_t n;
  const float* logits;
  float* predictions;
  STRATA_HD_MEMBER uint64_t items() const { return n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t i) const {
    predictions[i] = exact::Sigmoid(logits[i]);
  }
};

struct LossEach {
  static constexpr uint32_t kLanes = 1;
  uint32_t n;
  const float* logits;
  const float* labels;
  float* predictions;
  float* losses;
  float* gradients;
  STRATA_HD_MEMBER uint64_t items() const { return n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t i) const {
    const float logit = logits[i], label = labels[i];
    const float p = exact::Sigmoid(logit);
    predictions[i] = p;
    losses[i] = exact::LogLoss(logit, label);
    gradients[i] = p - label;
  }
};

}  // namespace

absl::Status Sigmoid(CudaApi& api, uint32_t n, const float* logits, float* predictions,
                     StreamHandle stream) {
  return LaunchOver(api, "sigmoid", SigmoidEach{n, logits, predictions}, n, stream);
}

absl::Status LogisticLoss(CudaApi& api, uint32_t n, const float* logits, const float* labels,
                          float* predictions, float* losses, float* gradients,
                          StreamHandle stream) {
  return LaunchOver(api, "logistic loss",
                    LossEach{n, logits, labels, predictions, losses, gradients}, n, stream);
}

}  // namespace strata::ops::gpu
