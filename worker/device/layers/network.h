// A model's forward and backward pass on a device, over memory of the device alone.
// Tested by tests/worker/device/step_test.cc
#ifndef STRATA_WORKER_DEVICE_LAYERS_NETWORK_H_
#define STRATA_WORKER_DEVICE_LAYERS_NETWORK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/nn/embedding.h"
#include "ops/cuda/nn/layers.h"
#include "ops/cuda/nn/losses.h"
#include "ops/cuda/nn/max_pool.h"
#include "ops/cuda/products/blas.h"
#include "ops/cuda/rows/coalesce.h"
#include "ops/nn/layer_memory.h"
#include "ops/nn/sparse_examples.h"
#include "worker/device/layers/attention.h"
#include "worker/device/layers/buffer_list.h"
#include "worker/device/layers/cross.h"
#include "worker/device/layers/field_vectors.h"
#include "worker/device/layers/fm_heads.h"
#include "worker/device/layers/layer_work.h"
#include "worker/device/layers/mixture.h"
#include "worker/device/layers/perceptron.h"
#include "worker/device/layers/stages.h"
#include "worker/device/layers/step_batch.h"
#include "worker/device/layers/towers.h"

namespace strata::device {

// Owns what lies between a batch's inputs and its gradients: one batch at a time, on one stream.
// Whatever it gives the stream may be captured: pointers and numbers depend on the StepBatch alone,
// counts are read from its memory.
class DeviceNetwork {
 public:
  DeviceNetwork(const Stages& stages, ops::gpu::CudaApi* api, ops::gpu::MatmulPrecision precision);

  // Memory for batches that `most` holds. The coalescer's is apart: CoalescerOptions.
  void Want(const StepShape& most, BufferList* memory);
  ops::gpu::Coalescer::Options CoalescerOptions(const StepShape& most) const;
  // When that was taken.
  void Open(std::unique_ptr<ops::gpu::Blas> blas, std::unique_ptr<ops::gpu::Coalescer> coalescer);

  // predictions; with kForwardAndBackward also losses and all gradients. Asynchronous.
  absl::Status Run(const StepBatch& batch, ops::Passes passes, ops::gpu::StreamHandle stream);

 private:
  absl::Status PoolRows(const StepBatch& batch, ops::Passes passes, ops::gpu::StreamHandle stream);
  absl::Status BackwardPooled(const StepBatch& batch, ops::gpu::StreamHandle stream);
  ops::gpu::MaxRuns MaxRunsOf(const StepBatch& batch) const;
  absl::Status ForwardRows(const StepBatch& batch, ops::Passes passes,
                           ops::gpu::StreamHandle stream);
  absl::Status ForwardLayers(const StepBatch& batch, ops::Passes passes,
                             ops::gpu::StreamHandle stream);
  absl::Status ForwardMatrix(const StepBatch& batch, ops::Passes passes,
                             ops::gpu::StreamHandle stream);
  absl::Status ForwardDots(const StepBatch& batch, ops::Passes passes,
                           ops::gpu::StreamHandle stream);
  absl::Status ForwardOutput(const StepBatch& batch, ops::gpu::StreamHandle stream);
  ops::gpu::TaskOutputs Outputs(const StepBatch& batch) const;
  absl::Status Loss(const StepBatch& batch, ops::gpu::StreamHandle stream);
  absl::Status BackwardFirstOrder(const StepBatch& batch, ops::gpu::StreamHandle stream);
  absl::Status BackwardNumericSquares(const StepBatch& batch, ops::gpu::StreamHandle stream);
  absl::Status BackwardLayers(const StepBatch& batch, ops::gpu::StreamHandle stream);
  absl::Status BackwardTop(const StepBatch& batch, ops::gpu::StreamHandle stream);
  absl::Status BackwardDots(const StepBatch& batch, ops::gpu::StreamHandle stream);
  absl::Status BackwardOutput(const StepBatch& batch, ops::gpu::StreamHandle stream);
  absl::Status BackwardRows(const StepBatch& batch, ops::gpu::StreamHandle stream);

  // The batch's features, pooled where they have to be.
  ops::SparseExamples Features(const StepBatch& batch) const;
  // (numbers of examples) transposed times `right`.
  absl::Status NumericProduct(const StepBatch& batch, const LayerWork::Columns& right, float* out,
                              ops::gpu::StreamHandle stream);
  ops::gpu::LinearTask Linear(const StepBatch& batch) const;
  // What goes from rows of `inputs` floats to the tasks' logits, and back.
  ops::gpu::MatmulShape OutputShape(uint32_t examples, uint32_t inputs) const;
  ops::gpu::MatmulShape OutputGradientShape(uint32_t examples, uint32_t inputs) const;
  ops::gpu::Matrix logits() const;
  ops::gpu::Matrix gradients() const;
  ops::gpu::Matrix matrix() const;
  ops::gpu::Matrix matrix_gradient() const;
  ops::gpu::Matrix top_in() const;
  ops::gpu::Matrix top_in_gradient() const;
  ops::gpu::Matrix top_out() const;
  ops::gpu::Matrix top_out_gradient() const;

  const Stages stages_;
  ops::gpu::CudaApi* const api_;
  LayerWork work_;
  std::optional<DevicePerceptron> bottom_, top_;
  std::optional<DeviceCross> cross_;
  std::optional<DeviceFmHeads> heads_;
  std::optional<DeviceTowers> towers_;
  std::optional<DeviceFieldVectors> vectors_;
  std::vector<std::unique_ptr<DeviceAttention>> attentions_;
  std::optional<DeviceMixture> mixture_;
  std::unique_ptr<ops::gpu::Coalescer> coalescer_;

  ops::gpu::Buffer logits_, gradients_;                      // (examples, tasks): by the logits
  ops::gpu::Buffer sums_;                                    // (examples, dim): second order
  ops::gpu::Buffer example_;                                 // (features or runs)
  ops::gpu::Buffer matrix_, matrix_gradient_;                // (examples, matrix width)
  ops::gpu::Buffer dots_in_, dots_in_gradient_;              // (examples, top's inputs)
  ops::gpu::Buffer top_out_, top_out_gradient_;              // (examples, top's outputs)
  ops::gpu::Buffer output_weight_, output_weight_gradient_;  // top's part of the output layer
  ops::gpu::Buffer scaled_, squares_, square_sums_;          // fm's numbers
  ops::gpu::Buffer pooled_rows_, run_gradients_;             // (runs, row dim)
  ops::gpu::Buffer max_from_;                                // (runs, row dim): see MaxPool
};

}  // namespace strata::device

#endif  // STRATA_WORKER_DEVICE_LAYERS_NETWORK_H_
