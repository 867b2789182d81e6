// A perceptron's layers on a device, forward and backward: ops/nn/mlp.h by a library's products
// with bias and ReLU in their kernels.
// Tested by tests/worker/device/step_test.cc
#ifndef STRATA_WORKER_DEVICE_LAYERS_PERCEPTRON_H_
#define STRATA_WORKER_DEVICE_LAYERS_PERCEPTRON_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/nn/layers.h"
#include "ops/nn/layer_memory.h"
#include "worker/device/layers/buffer_list.h"
#include "worker/device/layers/layer_work.h"
#include "worker/device/layers/stages.h"
#include "worker/device/layers/step_batch.h"

namespace strata::device {

// Inputs, outputs and their gradients belong to the caller; rows in between to this: batch x (2 x
// hidden widths + a bit each), and in bf16 what products read, rounded, which serves both passes.
// Where the stage has several rows of an example, the batch is so many times as long. Everything is
// asynchronous, on one stream.
class DevicePerceptron {
 public:
  // `work` outlives it.
  DevicePerceptron(const PerceptronStage& stage, LayerWork* work) : stage_(stage), work_(work) {}

  // Memory for batches of up to `examples`.
  void Want(uint32_t examples, BufferList* memory);

  // in: (rows, inputs); out: (rows, outputs), and unlike the CPU's it may lie in the
  // columns of a larger matrix.
  absl::Status Forward(const StepBatch& batch, const ops::gpu::Matrix& in,
                       const ops::gpu::Matrix& out, ops::Passes passes,
                       ops::gpu::StreamHandle stream);

  // After Forward of the same. out_gradient: by out, changed where out has a ReLU. in_gradient:
  // overwritten; not computed where its data is null. The tensors' gradients go to the batch's.
  struct Ends {
    ops::gpu::Matrix in, out, out_gradient, in_gradient;
  };
  absl::Status Backward(const StepBatch& batch, const Ends& ends, ops::gpu::StreamHandle stream);

 private:
  uint32_t Rows(const StepBatch& batch) const { return batch.examples * stage_.rows; }
  ops::gpu::MatmulShape ForwardShape(const StepBatch& batch, size_t layer) const;
  absl::Status RoundLayer(const StepBatch& batch, const ops::gpu::MatmulShape& shape, size_t layer,
                          const ops::gpu::Matrix& from, ops::gpu::StreamHandle stream);
  absl::Status BackwardLayer(const StepBatch& batch, const Ends& ends, size_t layer,
                             ops::gpu::StreamHandle stream);
  // Of what layer `layer` reads; 0: the ends' own.
  ops::gpu::Matrix Values(size_t layer, const ops::gpu::Matrix& in) const;
  ops::gpu::Matrix Gradients(size_t layer, const Ends& ends) const;

  const PerceptronStage stage_;
  LayerWork* const work_;
  // By layer: what it reads, from layer 1 on.
  std::vector<ops::gpu::Buffer> values_, gradients_, masks_;
  // In bf16, by layer: what it reads, and its weights; and the gradient at hand.
  std::vector<ops::gpu::Buffer> rounded_values_, rounded_weights_;
  ops::gpu::Buffer rounded_gradient_;
  std::vector<LayerWork::Rounded> rounded_;  // by layer, of the step at hand
};

}  // namespace strata::device

#endif  // STRATA_WORKER_DEVICE_LAYERS_PERCEPTRON_H_
