// A sequence of din on a device: what worker/models' din.cc does of one.
// Tested by tests/worker/device/step_test.cc
#ifndef STRATA_WORKER_DEVICE_LAYERS_ATTENTION_H_
#define STRATA_WORKER_DEVICE_LAYERS_ATTENTION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/nn/attention.h"
#include "ops/cuda/nn/layers.h"
#include "ops/nn/layer_memory.h"
#include "worker/device/layers/buffer_list.h"
#include "worker/device/layers/layer_work.h"
#include "worker/device/layers/perceptron.h"
#include "worker/device/layers/stages.h"
#include "worker/device/layers/step_batch.h"

namespace strata::device {

// The matrix and its gradient belong to the caller; to this, of each value that a sequence of the
// batch has room for, 2 x (4 dim + 4) floats beside what the layers have: what they do takes the
// same time however many values there are. Everything is asynchronous, on one stream.
class DeviceAttention {
 public:
  // `work` outlives it. number: of the sequence, among `sequences` of an example.
  DeviceAttention(const AttentionStage& stage, uint32_t number, uint32_t sequences,
                  LayerWork* work);

  void Want(uint32_t examples, BufferList* memory);

  // Writes the sequence's vector to the matrix.
  absl::Status Forward(const StepBatch& batch, const ops::gpu::Matrix& matrix, ops::Passes passes,
                       ops::gpu::StreamHandle stream);
  // After it, from the gradient by that vector: by the values, which it writes, and by the target,
  // to which it adds. The tensors' gradients go to the batch's.
  absl::Status Backward(const StepBatch& batch, const ops::gpu::Matrix& matrix,
                        const ops::gpu::Matrix& gradient, ops::gpu::StreamHandle stream);

 private:
  ops::gpu::AttentionTask Task(const StepBatch& batch) const;
  ops::gpu::Matrix Inputs(const ops::gpu::Buffer& buffer) const;
  ops::gpu::Matrix Weights(const ops::gpu::Buffer& buffer) const;

  const AttentionStage stage_;
  const uint32_t number_, sequences_;
  LayerWork* const work_;
  DevicePerceptron layers_;
  ops::gpu::Buffer inputs_, input_gradients_;    // (rows, 4 dim)
  ops::gpu::Buffer weights_, weight_gradients_;  // (rows, 1)
};

}  // namespace strata::device

#endif  // STRATA_WORKER_DEVICE_LAYERS_ATTENTION_H_
