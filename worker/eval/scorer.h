// Scores of a batch by the weights that servers have: one way for evaluation and for predictions.
// Tested by tests/worker/eval/evaluator_test.cc
// Tested by tests/e2e/predict_test.cc
#ifndef STRATA_WORKER_EVAL_SCORER_H_
#define STRATA_WORKER_EVAL_SCORER_H_

#include <vector>

#include "absl/status/status.h"
#include "ops/parallel.h"
#include "proto/core/ids.h"
#include "proto/job/tables/model_tables.h"
#include "worker/client/exchange.h"
#include "worker/client/parameter_client.h"
#include "worker/step/batch.h"
#include "worker/step/model.h"
#include "worker/step/router.h"

namespace strata {

struct ScorerOptions {
  // All outlive the scorer.
  ParameterClient* client = nullptr;
  const ModelTables* tables = nullptr;
  const Exchange* exchange = nullptr;
  Model* model = nullptr;
  ops::Parallel* parallel = nullptr;
};

// A line's scores do not depend on the other lines of its batch. Creates no rows. One thread at a
// time.
class Scorer {
 public:
  explicit Scorer(const ScorerOptions& options) : o_(options) {}

  // With the weights after commit step - 1 (0: present ones). `scores` becomes (batch size, tasks).
  absl::Status Score(Step step, const Batch& batch, std::vector<float>* scores);

 private:
  const ScorerOptions o_;
  Router router_;
  RoutedKeys routed_;
  ParameterBlock weights_;
};

}  // namespace strata

#endif  // STRATA_WORKER_EVAL_SCORER_H_
