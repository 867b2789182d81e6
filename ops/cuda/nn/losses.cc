#include "ops/cuda/nn/losses.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "ops/cuda/kernel/kernel.h"
#include "ops/cuda/kernel/row_block.h"
#include "ops/inline.h"

namespace strata::ops::gpu {
namespace {

// One thread an example's task.
struct OutputEach {
  static constexpr uint32_t kLanes = 1;
  uint32_t examples, tasks;
  Matrix sums;
  float* predictions;
  Loss losses[kMostTasks];

  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{examples} * tasks; }
  STRATA_HD_MEMBER float Sum(const RowAndQuad& at) const {
    return sums.data[size_t{at.row} * sums.stride + at.quad];
  }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, tasks);
    predictions[item] = TaskPrediction(losses[at.quad], Sum(at));
  }
};

struct LossEach {
  static constexpr uint32_t kLanes = 1;
  OutputEach output;
  TaskLabels labels;

  STRATA_HD_MEMBER uint64_t items() const { return output.items(); }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, output.tasks);
    const bool weighted = labels.weights != nullptr;
    const float weight = weighted ? labels.weights[at.row] : 1.0f;
    const LossOutput out =
        WeightedLoss(output.losses[at.quad], output.Sum(at), labels.labels[item],
                     at.row < *labels.count ? weight : 0.0f, weighted ? labels.weight_scale : 1.0f);
    output.predictions[item] = out.prediction;
    labels.costs[item] = out.loss;
    labels.gradients.data[size_t{at.row} * labels.gradients.stride + at.quad] = out.gradient;
  }
};

absl::Status Check(const TaskOutputs& task) {
  if (task.losses.size() <= kMostTasks) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(task.losses.size(), " tasks; a device takes at most ", kMostTasks));
}

OutputEach OutputsOf(const TaskOutputs& task) {
  OutputEach each = {
      task.examples, static_cast<uint32_t>(task.losses.size()), task.sums, task.predictions, {}};
  for (size_t t = 0; t < task.losses.size(); ++t) each.losses[t] = task.losses[t];
  return each;
}

}  // namespace

absl::Status TaskPredictions(CudaApi& api, const TaskOutputs& task, StreamHandle stream) {
  if (absl::Status s = Check(task); !s.ok()) return s;
  const OutputEach kernel = OutputsOf(task);
  return LaunchOver(api, "predictions", kernel, kernel.items(), stream);
}

absl::Status TaskLosses(CudaApi& api, const TaskOutputs& task, const TaskLabels& labels,
                        StreamHandle stream) {
  if (absl::Status s = Check(task); !s.ok()) return s;
  const LossEach kernel = {OutputsOf(task), labels};
  return LaunchOver(api, "losses", kernel, kernel.items(), stream);
}

}  // namespace strata::ops::gpu
