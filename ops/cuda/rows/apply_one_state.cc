#include "ops/cuda/rows/apply_launch.h"
#include "ops/cuda/rows/apply_plan.h"
#include "ops/optimizer_rules.h"

namespace strata::ops::gpu {

absl::Status ApplyMomentum(CudaApi& api, const ApplyPlan& plan, StreamHandle stream) {
  return LaunchRule<rules::Momentum<false>, false>(api, "apply momentum", plan, stream);
}

absl::Status ApplyNesterov(CudaApi& api, const ApplyPlan& plan, StreamHandle stream) {
  return LaunchRule<rules::Momentum<true>, false>(api, "apply nesterov", plan, stream);
}

absl::Status ApplyAdagrad(CudaApi& api, const ApplyPlan& plan, StreamHandle stream) {
  return LaunchRule<rules::Adagrad, false>(api, "apply adagrad", plan, stream);
}

}  // namespace strata::ops::gpu
