#include "worker/data/index/job_epoch_plan.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace strata {

absl::StatusOr<EpochPlan> MakeEpochPlan(const JobSpec& spec, const InputIndex& index) {
  const TrainingSpec& training = spec.training();
  const ShuffleSpec& shuffle = spec.data().shuffle();
  EpochPlanOptions options;
  options.lanes = training.has_lanes() ? training.lanes() : 8;
  options.batch_size = training.has_batch_size() ? training.batch_size() : 512;
  options.seed = training.has_seed() ? training.seed() : 1;
  options.shuffle = shuffle.has_enabled() ? shuffle.enabled() : true;
  options.buffer_lines = shuffle.has_buffer_lines() ? shuffle.buffer_lines() : 16384;
  options.steps_before = index.before().steps();
  options.tasks_before = index.before().tasks();
  if (options.lanes == 0) {
    return absl::InvalidArgumentError("spec.training.lanes: 0; needs at least 1");
  }
  if (options.batch_size == 0) {
    return absl::InvalidArgumentError("spec.training.batchSize: 0; needs at least 1");
  }
  if (options.buffer_lines == 0) {
    return absl::InvalidArgumentError("spec.data.shuffle.bufferLines: 0; needs at least 1");
  }
  std::vector<uint32_t> task_lines;
  task_lines.reserve(index.tasks_size());
  uint64_t lines = 0;
  for (const InputTask& task : index.tasks()) {
    task_lines.push_back(task.lines());
    lines += task.lines();
  }
  if (lines == 0) return absl::InvalidArgumentError("input index: no lines");
  return EpochPlan(std::move(task_lines), options);
}

}  // namespace strata
