// Training steps and predictions of one job on a device: batches come from the host's memory and
// gradients go back there, through pinned double buffers, while another batch is computed. Rows and
// their gradients may also lie in the device's memory (RowsThere): then they stay there.
#ifndef STRATA_WORKER_DEVICE_STEP_H_
#define STRATA_WORKER_DEVICE_STEP_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/products/blas.h"
#include "ops/parallel.h"
#include "proto/job/tables/model_tables.h"
#include "worker/device/layers/step_batch.h"
#include "worker/step/model.h"

namespace strata::device {

struct DeviceStepOptions {
  ops::gpu::CudaApi* api = nullptr;  // outlives the steps
  // Products on that device, with memory of `arena`, of which `blas_bytes` are for it.
  std::function<absl::StatusOr<std::unique_ptr<ops::gpu::Blas>>(ops::gpu::Arena* arena)> open_blas;
  size_t blas_bytes = 0;
  ops::gpu::MatmulPrecision precision = ops::gpu::MatmulPrecision::kFp32;
  // Examples of a training batch: others are filled up to multiples of it, so that they share its
  // graphs.
  uint32_t batch_size = 1;
  // Memory is taken for such batches at first.
  StepShape first_shape;
};

// What memory for such batches takes.
struct StepBytes {
  size_t device = 0;
  size_t pinned = 0;
  size_t pinned_rows = 0;  // and so much at most, where rows or gradients go by the host
};
StepBytes DeviceStepBytes(const ModelTables& tables, ops::gpu::MatmulPrecision precision,
                          const StepShape& most, size_t blas_bytes);

// Whether a device computes such a model by batches of that many examples. FAILED_PRECONDITION: it
// does not in this version, and the message names the field of the job that it is by.
absl::Status CheckOnDevice(const ModelTables& tables, uint32_t batch_size);

// Any thread; kSlots callers are under way at a time, further ones wait.
//
// Memory: one piece of the device's and one of pinned memory. With E examples, F features and U
// distinct keys of row dim r, T floats of tensors, and W the widths of all layers together, the
// device's is about kSlots x 4 (2 U r + 3 U + 3 F + E (1 + 3 tasks + numbers) + 2 T) + 4 (F + F r /
// 4 + 2 E W) + blas_bytes (r of several widths: the widest; and layers over sequences have a row of
// each value that E examples have room for), pinned memory the first of these terms, of which the 2
// U r for rows and their gradients are taken when the first go that way. A batch that does not fit
// makes all anew with a quarter of it to spare; so a job's steps allocate until the largest batch
// has been.
//
// A step's kernels are captured as a graph when a kind of step comes a second time, and launched as
// one from then on: by slot, padded number of examples, forward or both passes, and whether the
// batch has values, has fields, needs pooling, and has weights. All other counts (examples that are
// not filling, keys, runs) the kernels read from the device's memory, so a smaller batch runs by
// the same graph. kGraphs kinds at most; others are launched kernel by kernel.
class DeviceStep {
 public:
  static constexpr uint32_t kSlots = 2;
  static constexpr size_t kGraphs = 32;

  // Errors are CheckOnDevice's, the device's, and RESOURCE_EXHAUSTED where memory is short.
  static absl::StatusOr<std::unique_ptr<DeviceStep>> Make(const ModelTables& tables,
                                                          const DeviceStepOptions& options);
  virtual ~DeviceStep() = default;

  // As Model's (worker/step/model.h). Waits for the device once, for the copies of its results;
  // those of ModelGradients::rows_there are there then, too. After kResourceExhausted nothing is
  // lost and smaller batches go on; other errors are the device's.
  virtual absl::StatusOr<double> Train(const ModelInputs& in, const ModelGradients& out,
                                       float* predictions, ops::Parallel* parallel) = 0;
  virtual absl::Status Predict(const ModelInputs& in, float* predictions,
                               ops::Parallel* parallel) = 0;
  // As Model's: a free slot takes the batch, and its copies go to the device beside what is
  // computed there. Does nothing where no slot is free or the batch needs more memory. A step that
  // finds no other slot free takes that one, and waits for its copies first.
  virtual absl::Status Stage(const NextBatch& next, ops::Parallel* parallel) = 0;

  // Bytes of memory held now.
  virtual size_t device_bytes() const = 0;
  virtual size_t pinned_bytes() const = 0;
};

}  // namespace strata::device

#endif  // STRATA_WORKER_DEVICE_STEP_H_
