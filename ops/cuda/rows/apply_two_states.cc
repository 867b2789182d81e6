#include "ops/cuda/rows/apply_launch.h"
#include "ops/cuda/rows/apply_plan.h"
#include "ops/optimizer_rules.h"

namespace strata::ops::gpu {

absl::Status ApplyAdam(CudaApi& api, const ApplyPlan& plan, StreamHandle stream) {
  return LaunchRule<rules::Adam, false>(api, "apply adam", plan, stream);
}

absl::Status ApplyFtrl(CudaApi& api, const ApplyPlan& plan, StreamHandle stream) {
  return LaunchRule<rules::Ftrl, false>(api, "apply ftrl", plan, stream);
}

}  // namespace strata::ops::gpu
