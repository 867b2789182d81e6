// The cross network of dcn_v2 on a device, forward and backward: ops/nn/cross.h by a library's
// products.
// Tested by tests/worker/device/step_test.cc
#ifndef STRATA_WORKER_DEVICE_LAYERS_CROSS_H_
#define STRATA_WORKER_DEVICE_LAYERS_CROSS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/nn/layers.h"
#include "worker/device/layers/buffer_list.h"
#include "worker/device/layers/layer_work.h"
#include "worker/device/layers/stages.h"
#include "worker/device/layers/step_batch.h"

namespace strata::device {

// x0 belongs to the caller; rows in between to this: batch x (layers x (2 width + rank) + 2 width +
// rank) floats. Everything is asynchronous, on one stream.
class DeviceCross {
 public:
  // `work` outlives it.
  DeviceCross(const CrossStage& stage, LayerWork* work) : stage_(stage), work_(work) {}

  void Want(uint32_t examples, BufferList* memory);

  absl::Status Forward(const StepBatch& batch, const ops::gpu::Matrix& x0,
                       ops::gpu::StreamHandle stream);
  ops::gpu::Matrix output() const;

  // The caller fills it before Backward, which uses it up.
  ops::gpu::Matrix output_gradient() const;
  // Adds the gradient by x0 to `input_gradient`. The tensors' gradients go to the batch's.
  absl::Status Backward(const StepBatch& batch, const ops::gpu::Matrix& x0,
                        const ops::gpu::Matrix& input_gradient, ops::gpu::StreamHandle stream);

 private:
  absl::Status BackwardLayer(const StepBatch& batch, const ops::gpu::Matrix& x0,
                             const ops::gpu::Matrix& input_gradient, size_t layer,
                             ops::gpu::StreamHandle stream);
  // Of layer `layer`: its first tensor, what it reads, and what multiplies x0.
  size_t Tensor(size_t layer) const { return layer * (stage_.rank > 0 ? 3 : 2); }
  ops::gpu::Matrix Input(size_t layer, const ops::gpu::Matrix& x0) const;
  ops::gpu::Matrix Wide(const ops::gpu::Buffer& buffer) const;
  ops::gpu::Matrix Narrow(const ops::gpu::Buffer& buffer) const;

  const CrossStage stage_;
  LayerWork* const work_;
  std::vector<ops::gpu::Buffer> projected_, factor_, next_;  // by layer
  ops::gpu::Buffer gradient_, factor_gradient_, projected_gradient_;
};

}  // namespace strata::device

#endif  // STRATA_WORKER_DEVICE_LAYERS_CROSS_H_
