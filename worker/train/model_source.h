// The models of one job on a worker: on the CPU, on the worker's GPU, or on host threads that stand
// for one, as spec.worker says.
#ifndef STRATA_WORKER_TRAIN_MODEL_SOURCE_H_
#define STRATA_WORKER_TRAIN_MODEL_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "proto/core/table_spec.h"
#include "proto/job/tables/model_tables.h"
#include "proto/strata/job.pb.h"
#include "worker/device/row_memory.h"
#include "worker/device/worker_device.h"
#include "worker/step/batch.h"
#include "worker/step/dense_optimizer.h"
#include "worker/step/model.h"

namespace strata {

struct ModelSourceOptions {
  // Both outlive the source and its models.
  const ModelTables* tables = nullptr;
  const device::WorkerDevice* device = nullptr;  // null: the worker has none
  WorkerSpec worker;
  uint32_t batch_size = 1;  // of training
  bool evaluates = false;   // lines are scored, as many at a time as `scored` of the source says
  uint32_t threads = 1;     // that stand for a GPU (spec.worker.device: host)
};

// Any thread. Outlives its models.
class ModelSource {
 public:
  // INVALID_ARGUMENT: see MakeModel. FAILED_PRECONDITION: the job wants a GPU, or a precision, that
  // the worker has not. RESOURCE_EXHAUSTED: the GPU has not the memory.
  static absl::StatusOr<std::unique_ptr<ModelSource>> Make(const ModelSourceOptions& options);
  virtual ~ModelSource() = default;

  // Lines that a model predicts at a time, by the memory that there is for them.
  virtual BatchLimit scored() const = 0;
  // Those on a GPU share its memory and take turns.
  virtual absl::StatusOr<std::unique_ptr<Model>> NewModel() = 0;
  // For a lane's local steps on `rows` rows of the dense `table`. Null: models are on the CPU, and
  // so are those steps.
  virtual absl::StatusOr<std::unique_ptr<DenseOptimizer>> NewDenseOptimizer(const TableSpec& table,
                                                                            size_t rows) = 0;
  // Rows that models read and gradients that they leave there (RowsThere). Null: models are on the
  // CPU. Rows may outlive the source.
  virtual device::RowMemory* row_memory() = 0;
};

}  // namespace strata

#endif  // STRATA_WORKER_TRAIN_MODEL_SOURCE_H_
