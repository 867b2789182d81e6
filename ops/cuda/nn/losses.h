// Outputs of a model on a device: what its tasks' sums predict, what that costs, and the
// derivatives. ops/nn/loss/losses.h's functions, to the bit, and so logistic.h's. All pointers are
// in device memory; everything is asynchronous.
#ifndef STRATA_OPS_CUDA_NN_LOSSES_H_
#define STRATA_OPS_CUDA_NN_LOSSES_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/nn/layers.h"
#include "ops/nn/loss/loss_terms.h"

namespace strata::ops::gpu {

// A kernel takes all tasks' losses as an argument.
inline constexpr uint32_t kMostTasks = 64;

// Examples and what becomes of them, by losses.size() tasks. kInvalidArgument where these are more
// than kMostTasks.
struct TaskOutputs {
  std::span<const Loss> losses;  // on the host
  uint32_t examples = 0;
  Matrix sums;                   // (examples, tasks); read only
  float* predictions = nullptr;  // (examples, tasks)
};
absl::Status TaskPredictions(CudaApi& api, const TaskOutputs& task, StreamHandle stream);

// As TaskPredictions; costs and gradients are those of TaskLosses in ops/nn/loss/losses.h, and 0 of
// examples from *count on.
struct TaskLabels {
  const uint32_t* count = nullptr;
  const float* labels = nullptr;   // (examples, tasks); no number: the example has none
  const float* weights = nullptr;  // (examples), or null: all 1
  float weight_scale = 1.0f;       // times which they count in derivatives
  float* costs = nullptr;          // (examples, tasks)
  Matrix gradients;                // (examples, tasks)
};
absl::Status TaskLosses(CudaApi& api, const TaskOutputs& task, const TaskLabels& labels,
                        StreamHandle stream);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_NN_LOSSES_H_
