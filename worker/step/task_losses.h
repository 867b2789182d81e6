// What a job's tasks cost, as ops take it.
// Tested by tests/worker/models/gradients_test.cc, tests/worker/device/step_test.cc
#ifndef STRATA_WORKER_STEP_TASK_LOSSES_H_
#define STRATA_WORKER_STEP_TASK_LOSSES_H_

#include <vector>

#include "ops/exact_math.h"
#include "ops/nn/loss/loss_terms.h"
#include "proto/job/fields/task_spec.h"
#include "proto/job/tables/model_tables.h"

namespace strata {

inline ops::LossKind LossKindOf(TaskLoss loss) {
  switch (loss) {
    case TaskLoss::kLogistic:
      return ops::LossKind::kLogistic;
    case TaskLoss::kSquared:
      return ops::LossKind::kSquared;
    case TaskLoss::kPoisson:
      return ops::LossKind::kPoisson;
    case TaskLoss::kHuber:
      return ops::LossKind::kHuber;
  }
  return ops::LossKind::kLogistic;
}

// What the task's mean adds to the model's sum; the arithmetic is that of EXACT.md, the same
// everywhere.
inline float OffsetOf(const TaskSpec& task) {
  if (!task.mean) return ops::Loss().offset;
  switch (task.loss) {
    case TaskLoss::kLogistic:
      return ops::exact::Log(ops::exact::Div(*task.mean, 1.0f - *task.mean));
    case TaskLoss::kPoisson:
      return ops::exact::Log(*task.mean);
    case TaskLoss::kSquared:
    case TaskLoss::kHuber:
      return *task.mean;
  }
  return ops::Loss().offset;
}

// By task.
inline std::vector<ops::Loss> LossesOf(const ModelTables& tables) {
  std::vector<ops::Loss> losses;
  for (const TaskSpec& task : tables.tasks) {
    losses.push_back({LossKindOf(task.loss), task.weight, task.delta, OffsetOf(task)});
  }
  return losses;
}

}  // namespace strata

#endif  // STRATA_WORKER_STEP_TASK_LOSSES_H_
