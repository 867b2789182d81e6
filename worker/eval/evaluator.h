// Held-out quality: predictions over the eval files in input order.
#ifndef STRATA_WORKER_EVAL_EVALUATOR_H_
#define STRATA_WORKER_EVAL_EVALUATOR_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "ops/parallel.h"
#include "proto/core/ids.h"
#include "proto/job/fields/label_spec.h"
#include "proto/job/tables/model_tables.h"
#include "proto/strata/job.pb.h"
#include "worker/client/exchange.h"
#include "worker/client/parameter_client.h"
#include "worker/data/reading/batch_source.h"
#include "worker/eval/prediction_file.h"
#include "worker/step/batch.h"
#include "worker/step/model.h"

namespace strata {

struct EvaluatorOptions {
  // All outlive the evaluator.
  ParameterClient* client = nullptr;
  BatchSource* source = nullptr;  // the eval files
  uint64_t lines = 0;             // physical lines in them
  BatchLimit at_a_time;           // lines that are scored at once: ScoredAtATime
  const ModelTables* tables = nullptr;
  MetricsPlan metrics;
  // Of metrics.gauc_field.
  std::optional<uint32_t> gauc_field;
  const Exchange* exchange = nullptr;
  Model* model = nullptr;
  ops::Parallel* parallel = nullptr;
  const std::atomic<bool>* cancelled = nullptr;
};

// Reads every line once, in order, pulls, predicts. Creates no rows. One thread at a time.
// Memory: 8 bytes per line and label for the exact AUC (task_metrics.h), and what the lines that
// are scored at once take. Results do not depend on how many these are.
class Evaluator {
 public:
  explicit Evaluator(const EvaluatorOptions& options) : o_(options) {}

  // With the weights after commit step - 1 (0: present ones). `predictions` is open, and gets
  // "label,score" per good line (several labels: all of them, then all scores; one that is empty is
  // nothing); the caller finishes it. The result's step is step - 1.
  absl::StatusOr<EvaluationResult> Run(Step step, PredictionFile& predictions);

 private:
  const EvaluatorOptions o_;
};

}  // namespace strata

#endif  // STRATA_WORKER_EVAL_EVALUATOR_H_
