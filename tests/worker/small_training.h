// What trainers need beside servers: a small plan, batches made up by place, and a model whose
// gradients a test can tell.
#ifndef STRATA_TESTS_WORKER_SMALL_TRAINING_H_
#define STRATA_TESTS_WORKER_SMALL_TRAINING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "ops/parallel.h"
#include "proto/core/ids.h"
#include "proto/core/table_spec.h"
#include "worker/bsp/lane_preparer.h"
#include "worker/data/reading/batch_source.h"
#include "worker/device/row_memory.h"
#include "worker/step/batch.h"
#include "worker/step/dense_optimizer.h"
#include "worker/step/model.h"
#include "worker/train/boundary.h"
#include "worker/train/model_source.h"
#include "worker/train/plan.h"

namespace strata::testing {

// Of job 5, generation 2, map epoch 3; shards 0 .. 3 on `servers` servers; SmallTables.
TrainingPlan SmallPlan(const std::string& mode, uint32_t servers, uint32_t lanes, Step last_step);

// Any place has a batch of three examples of five features, the first of which are the same in all
// batches. Windows have a bad line.
class MadeUpSource : public BatchSource {
 public:
  absl::Status Read(Step step, LaneId lane, Batch* out) override;
  absl::Status ReadWindow(TaskId task, uint64_t window, Batch* out) override;
  absl::StatusOr<uint64_t> ReadLines(uint64_t first, const BatchLimit& most, Batch* out) override;
  std::string first_bad_line() const override { return ""; }

  // What the next Read, ReadWindow or ReadLines returns instead.
  void Fail(absl::Status status);

 private:
  absl::Status Make(uint64_t place, Batch* out);

  absl::Mutex mu_;
  absl::Status fails_ ABSL_GUARDED_BY(mu_);
};

// Each row's gradient is how often the batch has its key, in every float; of each dense tensor the
// first one's is 1. Predicts 0.25. Takes memory of a HostApi for memory.
class CountingModel : public Model {
 public:
  // Called by each TrainStep first, unless empty.
  std::function<void()> on_step;

  absl::StatusOr<double> TrainStep(const ModelInputs& in, const ModelGradients& out,
                                   float* predictions, ops::Parallel* parallel) override;
  absl::Status Predict(const ModelInputs& in, float* predictions, ops::Parallel*) override;
};

// Reads when it is asked to; so every batch counts as ready.
class PromptPreparer : public LanePreparer {
 public:
  // Both outlive it.
  PromptPreparer(BatchSource* source, const TableSpec* features)
      : source_(source), features_(features) {}
  absl::StatusOr<std::shared_ptr<const PreparedLane>> Get(Step step, uint32_t lane) override;
  bool Ready(Step, uint32_t) override { return true; }
  void Forget(uint32_t) override {}

 private:
  BatchSource* const source_;
  const TableSpec* const features_;
};

class CountingModels : public ModelSource {
 public:
  BatchLimit scored() const override { return {.lines = 4096}; }
  absl::StatusOr<std::unique_ptr<Model>> NewModel() override;
  absl::StatusOr<std::unique_ptr<DenseOptimizer>> NewDenseOptimizer(const TableSpec&,
                                                                    size_t) override;
  device::RowMemory* row_memory() override { return nullptr; }
};

// Notes each call; goes on unless told otherwise.
class NotedBoundary : public StepBoundary {
 public:
  absl::StatusOr<Verdict> OnBoundary(Step completed, bool last) override;

  struct Call {
    uint64_t completed;
    bool last;
    friend bool operator==(const Call&, const Call&) = default;
  };
  std::vector<Call> calls() const;
  // Returns when there were `n` calls.
  void AwaitCalls(size_t n);
  void StopAfter(Step completed);
  void FailAfter(Step completed, absl::Status status);

 private:
  mutable absl::Mutex mu_;
  std::vector<Call> calls_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, absl::StatusOr<Verdict>> says_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_WORKER_SMALL_TRAINING_H_
