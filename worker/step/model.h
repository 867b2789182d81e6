// A model turns pulled rows and a batch into predictions, a loss and gradient sums. Models are
// built from ops; they know nothing of servers, steps or lanes.
// Tested by tests/worker/models/gradients_test.cc
// Tested by tests/worker/models/models_test.cc
#ifndef STRATA_WORKER_STEP_MODEL_H_
#define STRATA_WORKER_STEP_MODEL_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/parallel.h"
#include "proto/job/tables/model_tables.h"
#include "worker/step/batch.h"
#include "worker/step/key_runs.h"

namespace strata {

// How long the passes of a TrainStep took. What comes after the blocks belongs to the backward
// pass.
struct PassTimes {
  std::atomic<int64_t> forward_ns{0};   // of blocks, summed over threads
  std::atomic<int64_t> backward_ns{0};  // of blocks, summed over threads
  std::chrono::steady_clock::time_point blocks_done;
};

// Rows in the memory of a model's device, of which a batch needs some.
struct RowsThere {
  const float* rows = nullptr;  // (any, row dim of the table)
  // (unique), on the host: which key there each of the batch's is; empty: key u for key u.
  std::span<const uint32_t> place;
  // Of the keys there, where `place` says which: at least of the batch's tables.
  std::span<const KeyRun> runs;
};

// A batch that TrainStep is given later, likely as the next one.
struct NextBatch {
  const Batch* batch = nullptr;
  const RoutedKeys* routed = nullptr;
  std::shared_ptr<const void> owner;  // of both, which do not change
};

// Weights that one batch needs. The arrays belong to the caller.
struct ModelInputs {
  const Batch* batch = nullptr;
  const RoutedKeys* routed = nullptr;
  const float* rows = nullptr;            // (unique, row dim of the table)
  std::span<const float* const> tensors;  // by tensor number of ModelTables; (elements) each
  PassTimes* passes = nullptr;            // filled by TrainStep, unless null
  RowsThere there;                        // instead of rows, where the model is on a device
  // Called once by a TrainStep that waits for a device (`waits`) while it does so, unless null; its
  // error is the step's. What ModelGradients' tensors point to may be decided by it.
  std::function<absl::Status()> meanwhile;
};

// Where gradient sums over the batch's examples go (not means). Arrays belong to the caller and
// need not be cleared before.
struct ModelGradients {
  float* rows = nullptr;            // (unique, row dim)
  std::span<float* const> tensors;  // (elements) each
  // Instead of rows, where the model is on a device: (unique, row dim) in its memory.
  float* rows_there = nullptr;
};

// One batch at a time; a Model owns its scratch memory and is used by one thread at a time (it
// spreads its own work over `parallel`). Results do not depend on the number of threads.
class Model {
 public:
  virtual ~Model() = default;

  // predictions: (batch size), probabilities. Returns the sum over examples of the logloss. Errors
  // are those of a device that computes; on the CPU there are none.
  virtual absl::StatusOr<double> TrainStep(const ModelInputs& in, const ModelGradients& out,
                                           float* predictions, ops::Parallel* parallel) = 0;
  virtual absl::Status Predict(const ModelInputs& in, float* predictions,
                               ops::Parallel* parallel) = 0;

  // Whether TrainStep leaves the work to a device.
  virtual bool waits() const { return false; }
  // Begins what a batch needs and no weights are needed for, where that can go on beside another
  // batch's step. One batch is kept, the last, until a TrainStep of it. Errors: a device's.
  virtual absl::Status Stage(const NextBatch& /*next*/, ops::Parallel* /*parallel*/) {
    return absl::OkStatus();
  }
};

}  // namespace strata

#endif  // STRATA_WORKER_STEP_MODEL_H_
