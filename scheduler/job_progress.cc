#include "scheduler/job_progress.h"

#include <algorithm>

#include "proto/core/job_plan.h"

namespace strata::scheduler {

uint64_t TotalSteps(const JobSpec& spec, const InputIndex& train) {
  const TrainingSpec& t = spec.training();
  if (t.mode() == "bsp") {
    return t.epochs() * StepsPerEpoch(train.lines(), t.lanes(), t.batch_size());
  }
  uint64_t windows = 0;
  for (const InputTask& task : train.tasks()) {
    windows += WindowsOfTask(t, (task.lines() + t.batch_size() - 1) / t.batch_size());
  }
  return t.epochs() * windows;
}

uint64_t LinesAtStep(const JobSpec& spec, uint64_t lines, uint64_t step) {
  const uint64_t lanes = spec.training().lanes();
  const uint64_t batch = spec.training().batch_size();
  const uint64_t per_epoch =
      StepsPerEpoch(lines, spec.training().lanes(), spec.training().batch_size());
  if (per_epoch == 0) return 0;
  const uint64_t taken = (step % per_epoch) * batch;
  const uint64_t long_lanes = lines % lanes, share = lines / lanes;
  return step / per_epoch * lines + long_lanes * std::min(taken, share + 1) +
         (lanes - long_lanes) * std::min(taken, share);
}

void AddEvaluation(const EvaluationResult& result,
                   google::protobuf::RepeatedPtrField<EvaluationResult>& list) {
  int at = list.size();
  while (at > 0 && list[at - 1].step() > result.step()) --at;
  if (at > 0 && list[at - 1].step() == result.step()) {
    list[at - 1] = result;
    return;
  }
  *list.Add() = result;
  std::rotate(list.pointer_begin() + at, list.pointer_end() - 1, list.pointer_end());
}

}  // namespace strata::scheduler
