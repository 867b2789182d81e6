// What the kernels of apply.h are given, and the gradient of one row.
// Tested by tests/ops/cuda/rows/lanes_test.cc
#ifndef STRATA_OPS_CUDA_ROWS_APPLY_PLAN_H_
#define STRATA_OPS_CUDA_ROWS_APPLY_PLAN_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/rows/apply.h"
#include "ops/exact_math.h"
#include "ops/inline.h"
#include "ops/optimizer_rules.h"

namespace strata::ops::gpu {

// What a step's rate is made of.
enum class RateKind : uint8_t { kScheduled, kAdam, kAdd };

struct ApplyPlan {
  ApplyTask task;
  RuleParameters rule;  // but for its rate
  RateKind rate_kind = RateKind::kScheduled;
  float clip_value = 0.0f, clip_norm = 0.0f, weight_decay = 0.0f;
  bool aligned = false;

  STRATA_HD_MEMBER bool prepares() const {
    return clip_value > 0.0f || clip_norm > 0.0f || weight_decay != 0.0f;
  }
};

// How one row's gradient is made of its sum.
struct RowGradient {
  float examples = 1.0f;
  float clip_value = 0.0f;            // 0: none
  float scale = 0.0f, factor = 0.0f;  // clipped by norm where factor is not 0
  float weight_decay = 0.0f;
  bool clipped = false;

  STRATA_HD_MEMBER float Clipped(float sum) const {
    float g = exact::Div(sum, examples);
    if (clip_value > 0.0f) g = rules::ClipValue(clip_value, g);
    return factor != 0.0f ? (g * scale) * factor : g;
  }
  STRATA_HD_MEMBER float Of(float sum, float weight) const {
    const float g = Clipped(sum);
    return weight_decay == 0.0f ? g : exact::Fma(weight_decay, weight, g);
  }
};

// The rules, by how many states they have: compiled side by side.
absl::Status ApplySgd(CudaApi& api, const ApplyPlan& plan, StreamHandle stream);
absl::Status ApplyRowwiseAdagrad(CudaApi& api, const ApplyPlan& plan, StreamHandle stream);
absl::Status ApplyMomentum(CudaApi& api, const ApplyPlan& plan, StreamHandle stream);
absl::Status ApplyNesterov(CudaApi& api, const ApplyPlan& plan, StreamHandle stream);
absl::Status ApplyAdagrad(CudaApi& api, const ApplyPlan& plan, StreamHandle stream);
absl::Status ApplyAdam(CudaApi& api, const ApplyPlan& plan, StreamHandle stream);
absl::Status ApplyFtrl(CudaApi& api, const ApplyPlan& plan, StreamHandle stream);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_ROWS_APPLY_PLAN_H_
