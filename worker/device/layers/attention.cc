#include "worker/device/layers/attention.h"

#include <cstddef>

#include "worker/device/layers/return_if_error.h"

namespace strata::device {

using ops::gpu::Buffer;
using ops::gpu::Matrix;
using ops::gpu::StreamHandle;

DeviceAttention::DeviceAttention(const AttentionStage& stage, uint32_t number, uint32_t sequences,
                                 LayerWork* work)
    : stage_(stage),
      number_(number),
      sequences_(sequences),
      work_(work),
      layers_(stage.layers, work) {}

void DeviceAttention::Want(uint32_t examples, BufferList* memory) {
  layers_.Want(examples, memory);
  const size_t rows = size_t{examples} * stage_.most;
  for (Buffer* buffer : {&inputs_, &input_gradients_}) {
    memory->WantArray<float>(buffer, rows * Inputs(*buffer).stride);
  }
  for (Buffer* buffer : {&weights_, &weight_gradients_}) {
    memory->WantArray<float>(buffer, rows * Weights(*buffer).stride);
  }
}

ops::gpu::AttentionTask DeviceAttention::Task(const StepBatch& batch) const {
  ops::gpu::AttentionTask task;
  task.examples = batch.examples;
  task.most = stage_.most;
  task.dim = stage_.dim;
  task.lengths = batch.sequence_length + number_;
  task.lengths_stride = sequences_;
  task.values = stage_.values;
  task.target = stage_.target;
  task.sum = stage_.sum;
  return task;
}

Matrix DeviceAttention::Inputs(const Buffer& buffer) const {
  return {buffer.as<float>(), RowFloats(stage_.layers.widths.front())};
}
Matrix DeviceAttention::Weights(const Buffer& buffer) const {
  return {buffer.as<float>(), RowFloats(1)};
}

absl::Status DeviceAttention::Forward(const StepBatch& batch, const Matrix& matrix,
                                      ops::Passes passes, StreamHandle stream) {
  const ops::gpu::AttentionTask task = Task(batch);
  const Matrix inputs = Inputs(inputs_), weights = Weights(weights_);
  STRATA_RETURN_IF_ERROR(AttentionInputs(work_->api(), task, matrix, inputs, stream));
  STRATA_RETURN_IF_ERROR(layers_.Forward(batch, inputs, weights, passes, stream));
  return AttentionSum(work_->api(), task, weights, matrix, stream);
}

absl::Status DeviceAttention::Backward(const StepBatch& batch, const Matrix& matrix,
                                       const Matrix& gradient, StreamHandle stream) {
  const ops::gpu::AttentionTask task = Task(batch);
  const Matrix inputs = Inputs(inputs_), input_gradients = Inputs(input_gradients_);
  const Matrix weights = Weights(weights_), weight_gradients = Weights(weight_gradients_);
  STRATA_RETURN_IF_ERROR(
      AttentionWeightGradients(work_->api(), task, matrix, gradient, weight_gradients, stream));
  STRATA_RETURN_IF_ERROR(
      layers_.Backward(batch, {inputs, weights, weight_gradients, input_gradients}, stream));
  return AttentionBackward(work_->api(), task, matrix, weights, input_gradients, gradient, stream);
}

}  // namespace strata::device
