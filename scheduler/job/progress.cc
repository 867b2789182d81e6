#include "scheduler/job/progress.h"

#include <algorithm>

#include "proto/job/job_plan.h"

namespace strata::scheduler {

uint64_t TotalSteps(const JobSpec& spec, const InputIndex& train) {
  const TrainingSpec& t = spec.training();
  if (t.mode() == "bsp") {
    return train.before().steps() +
           t.epochs() * StepsPerEpoch(train.lines(), t.lanes(), t.batch_size());
  }
  uint64_t windows = 0;
  for (const InputTask& task : train.tasks()) {
    windows += WindowsOfTask(t, (task.lines() + t.batch_size() - 1) / t.batch_size());
  }
  return train.before().steps() + t.epochs() * windows;
}

uint64_t TotalTasks(const JobSpec& spec, const InputIndex& train) {
  return train.before().tasks() +
         spec.training().epochs() * static_cast<uint64_t>(train.tasks_size());
}

uint64_t TotalLines(const JobSpec& spec, const InputIndex& train) {
  return train.before().lines() + spec.training().epochs() * train.lines();
}

uint64_t LinesBy(const JobSpec& spec, const InputIndex& train, uint64_t step) {
  const uint64_t own = step - std::min(step, train.before().steps());
  return train.before().lines() + LinesAtStep(spec.training(), train.lines(), own);
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

void DropEvaluations(uint64_t most, uint64_t best_step,
                     google::protobuf::RepeatedPtrField<EvaluationResult>& list) {
  while (static_cast<uint64_t>(list.size()) > most) {
    list.erase(list.begin() + (list[0].step() == best_step ? 1 : 0));
  }
}

}  // namespace strata::scheduler
