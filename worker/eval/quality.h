// How good scores are, by the labels of their lines.
// Tested by tests/worker/eval/evaluator_test.cc
// Tested by tests/e2e/predict_test.cc
#ifndef STRATA_WORKER_EVAL_QUALITY_H_
#define STRATA_WORKER_EVAL_QUALITY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "proto/job/fields/label_spec.h"
#include "proto/job/tables/model_tables.h"
#include "proto/strata/job.pb.h"
#include "worker/eval/task_metrics.h"
#include "worker/step/batch.h"

namespace strata {

// How many lines have a label, whichever.
uint64_t LabelledLines(const Batch& batch);

// Memory: 8 bytes of each line and label, for the exact AUC, and what TaskMetrics says.
class Quality {
 public:
  // `tables` outlive it. gauc_field: number of metrics.gauc_field.
  Quality(const ModelTables* tables, const MetricsPlan& metrics,
          std::optional<uint32_t> gauc_field);

  // scores: (batch size, tasks). Of a job without spec.labels, lines without a label are left out.
  void Add(const Batch& batch, const std::vector<float>& scores);
  void Fill(EvaluationResult* result) const;

  // Lines of which some label was there.
  uint64_t labelled() const { return labelled_; }

 private:
  const ModelTables* const tables_;
  const bool by_task_;
  TaskMetrics tasks_;
  std::vector<float> scores_, labels_;  // of a plain model
  uint64_t labelled_ = 0;
};

}  // namespace strata

#endif  // STRATA_WORKER_EVAL_QUALITY_H_
