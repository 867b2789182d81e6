// What models over tables of any widths read on a device: worker/models' FieldInput, to the bit.
// Tested by tests/worker/device/step_test.cc
#ifndef STRATA_WORKER_DEVICE_LAYERS_FIELD_VECTORS_H_
#define STRATA_WORKER_DEVICE_LAYERS_FIELD_VECTORS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/nn/layers.h"
#include "ops/cuda/rows/coalesce.h"
#include "ops/cuda/rows/row_runs.h"
#include "ops/nn/field_vectors.h"
#include "ops/nn/layer_memory.h"
#include "worker/device/layers/buffer_list.h"
#include "worker/device/layers/stages.h"
#include "worker/device/layers/step_batch.h"

namespace strata::device {

// The matrix and its gradient belong to the caller; to this 20 bytes a feature and, where fields
// are pooled by max, as much as the matrix. Everything is asynchronous, on one stream.
class DeviceFieldVectors {
 public:
  // `stages` outlives it. REQUIRES: it has field_vectors.
  DeviceFieldVectors(const Stages* stages, ops::gpu::CudaApi* api) : stages_(*stages), api_(api) {}

  void Want(const StepShape& most, BufferList* memory);

  // Fields' vectors, zeros at those of sequences, and the sequences' values.
  absl::Status Forward(const StepBatch& batch, const ops::gpu::Matrix& matrix, ops::Passes passes,
                       ops::gpu::StreamHandle stream);
  // After it: the rows' gradients, from those by the matrix.
  absl::Status Backward(const StepBatch& batch, const ops::gpu::Matrix& matrix_gradient,
                        const ops::gpu::Coalescer& coalescer, ops::gpu::StreamHandle stream);

 private:
  ops::gpu::RowRuns Runs(const StepBatch& batch) const;
  ops::VectorExamples Examples(const StepBatch& batch) const;

  const Stages& stages_;
  ops::gpu::CudaApi* const api_;
  ops::gpu::Buffer places_, example_;  // (features)
  ops::gpu::Buffer from_;              // as the matrix: see ops::VectorMatrix
};

}  // namespace strata::device

#endif  // STRATA_WORKER_DEVICE_LAYERS_FIELD_VECTORS_H_
