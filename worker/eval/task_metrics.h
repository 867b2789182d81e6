// Held-out quality by label.
#ifndef STRATA_WORKER_EVAL_TASK_METRICS_H_
#define STRATA_WORKER_EVAL_TASK_METRICS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "proto/job/fields/label_spec.h"
#include "proto/job/fields/task_spec.h"
#include "proto/strata/job.pb.h"
#include "worker/step/batch.h"

namespace strata {

// Collects examples, then tells of each label. Memory: 8 bytes of each example and label; 8 each of
// an example's weight and of its value of gauc's field, where there are such.
class TaskMetrics {
 public:
  // gauc_field: number of the field; none: the plan has no gauc.
  TaskMetrics(std::vector<TaskSpec> tasks, MetricsPlan plan, std::optional<uint32_t> gauc_field);

  // predictions: (batch size, tasks).
  void Add(const Batch& batch, const std::vector<float>& predictions);
  // Fills the tasks, and what the result says of the first: AUC (no number where one of two classes
  // weighs nothing), logloss (another kind: the mean loss), calibration, examples, positives. A
  // task has no metric of predictions that are no finite numbers; of the first AUC, logloss and
  // calibration are none either.
  void Fill(EvaluationResult* result) const;

 private:
  TaskResult Of(size_t task, EvaluationResult* first) const;

  const std::vector<TaskSpec> tasks_;
  const MetricsPlan plan_;
  const std::optional<uint32_t> gauc_field_;
  std::vector<float> labels_, predictions_;  // (examples, tasks)
  std::vector<uint64_t> units_;              // (examples), or empty: all weigh 1
  std::vector<uint64_t> groups_;             // (examples), or empty: no gauc
  std::vector<bool> without_;                // (examples), or empty: those of no group
};

}  // namespace strata

#endif  // STRATA_WORKER_EVAL_TASK_METRICS_H_
