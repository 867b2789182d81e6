// Launches the kernel of apply_rows.h in the shape that suits a row's length.
// Tested by tests/ops/cuda/rows/apply_test.cc
#ifndef STRATA_OPS_CUDA_ROWS_APPLY_LAUNCH_H_
#define STRATA_OPS_CUDA_ROWS_APPLY_LAUNCH_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/kernel/kernel.h"
#include "ops/cuda/rows/apply_plan.h"
#include "ops/cuda/rows/apply_rows.h"

namespace strata::ops::gpu {

template <typename Functor>
absl::Status LaunchRows(CudaApi& api, const char* name, const ApplyPlan& plan, uint32_t rows,
                        StreamHandle stream) {
  const uint64_t items = (uint64_t{plan.task.rows.most} + rows - 1) / rows;
  return LaunchOver(api, name, Functor{plan}, items, stream);
}

// The shape for a row's length: a few quads of loads in flight per lane and array.
template <typename Rule, bool kRowwise>
absl::Status LaunchRule(CudaApi& api, const char* name, const ApplyPlan& plan,
                        StreamHandle stream) {
  const uint32_t dim = plan.task.dim;
  if (dim <= 16) return LaunchRows<ApplyQuads<Rule, kRowwise, 4, 1, 2>>(api, name, plan, 2, stream);
  if (dim <= 64) return LaunchRows<ApplyQuads<Rule, kRowwise, 4, 4, 1>>(api, name, plan, 1, stream);
  if (dim <= 128) {
    // The sum of a row's squares wants its quads in four lanes.
    constexpr uint32_t kWidth = kRowwise ? 4 : 8;
    return LaunchRows<ApplyQuads<Rule, kRowwise, kWidth, 32 / kWidth, 1>>(api, name, plan, 1,
                                                                          stream);
  }
  // Two quads of two states would not fit into registers.
  constexpr uint32_t kQuads = Rule::kStates == 2 ? 1 : 2;
  return LaunchRows<ApplyQuads<Rule, kRowwise, 32, kQuads, 1>>(api, name, plan, 1, stream);
}

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_ROWS_APPLY_LAUNCH_H_
