#include "ops/cuda/rows/apply.h"

#include "absl/status/status.h"
#include "ops/cuda/kernel/vector4.h"
#include "ops/cuda/rows/apply_launch.h"
#include "ops/cuda/rows/apply_plan.h"
#include "ops/optimizer_rules.h"

namespace strata::ops::gpu {

absl::Status ApplySgd(CudaApi& api, const ApplyPlan& plan, StreamHandle stream) {
  return LaunchRule<rules::Sgd, false>(api, "apply sgd", plan, stream);
}

absl::Status ApplyRowwiseAdagrad(CudaApi& api, const ApplyPlan& plan, StreamHandle stream) {
  return LaunchRule<rules::Sgd, true>(api, "apply rowwise_adagrad", plan, stream);
}

absl::Status Apply(CudaApi& api, const OptimizerConfig& config, const ApplyTask& task,
                   StreamHandle stream) {
  if (task.dim == 0) return absl::InvalidArgumentError("rows of no element are not updated");
  ApplyPlan plan;
  plan.task = task;
  plan.rule.epsilon = config.epsilon;
  plan.rule.beta1 = config.beta1;
  plan.rule.beta2 = config.beta2;
  plan.rule.momentum = config.momentum;
  plan.rule.beta = config.beta;
  plan.rule.l1 = config.l1;
  plan.rule.l2 = config.l2;
  plan.aligned = IsAligned4(task.table.base, task.table.stride) && task.state_offset % 4 == 0 &&
                 IsAligned4(task.sums, task.sum_stride);
  if (config.kind == OptimizerKind::kAdd) {
    plan.rate_kind = RateKind::kAdd;
    return ApplySgd(api, plan, stream);
  }
  plan.clip_value = config.clip_value;
  plan.clip_norm = config.clip_norm;
  plan.weight_decay = config.weight_decay;
  switch (config.kind) {
    case OptimizerKind::kSgd:
    case OptimizerKind::kAdd:
      return ApplySgd(api, plan, stream);
    case OptimizerKind::kMomentum:
      return config.nesterov ? ApplyNesterov(api, plan, stream) : ApplyMomentum(api, plan, stream);
    case OptimizerKind::kRowwiseAdagrad:
      if (task.dim > 1) return ApplyRowwiseAdagrad(api, plan, stream);
      [[fallthrough]];  // the mean of one square is that square
    case OptimizerKind::kAdagrad:
      return ApplyAdagrad(api, plan, stream);
    case OptimizerKind::kAdam:
      plan.rate_kind = RateKind::kAdam;
      return ApplyAdam(api, plan, stream);
    case OptimizerKind::kFtrl:
      return ApplyFtrl(api, plan, stream);
  }
  return absl::InvalidArgumentError("an optimizer of no known kind");
}

}  // namespace strata::ops::gpu
