// The boundary between steps on the host of lane 0: evaluates when the job says so, stops early
// when quality no longer rises, and writes the metrics file.
#ifndef STRATA_WORKER_EVAL_BOUNDARY_H_
#define STRATA_WORKER_EVAL_BOUNDARY_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/timer.h"
#include "proto/strata/job.pb.h"
#include "worker/eval/evaluator.h"
#include "worker/metrics/training_stats.h"
#include "worker/train/boundary.h"

namespace strata {

struct EvaluationBoundaryOptions {
  JobSpec spec;
  Evaluator* evaluator = nullptr;  // null: the job has no eval files
  TrainingStats* stats = nullptr;
  // Evaluations of this job so far, ascending by step: a new host of lane 0 goes on counting
  // patience from them.
  std::vector<EvaluationResult> history;
  // Lines of the job's training data, by which bsp knows the whole job's examples.
  uint64_t train_lines = 0;
  uint64_t steps_before = 0;     // of earlier runs, on other files
  Timer* timer = Timer::Real();  // outlives the boundary
  // Checked while waiting for a checkpoint of the best step.
  const std::atomic<bool>* cancelled = nullptr;
};

// OnBoundary comes from the trainer's thread; SetCheckpoints from any.
class EvaluationBoundary : public StepBoundary {
 public:
  // Error: the metrics file cannot be opened.
  static absl::StatusOr<std::unique_ptr<EvaluationBoundary>> Make(
      const EvaluationBoundaryOptions& options);

  // Steps of complete checkpoints, as the scheduler tells.
  virtual void SetCheckpoints(std::vector<uint64_t> steps) = 0;
};

}  // namespace strata

#endif  // STRATA_WORKER_EVAL_BOUNDARY_H_
