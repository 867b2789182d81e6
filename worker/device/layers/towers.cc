#include "worker/device/layers/towers.h"

#include <cstddef>

#include "worker/device/layers/return_if_error.h"

namespace strata::device {

using ops::gpu::Matrix;
using ops::gpu::StreamHandle;

DeviceTowers::DeviceTowers(const std::vector<PerceptronStage>& stages, LayerWork* work)
    : inputs_(stages.front().widths.front()), work_(work) {
  for (const PerceptronStage& stage : stages) {
    towers_.push_back(std::make_unique<DevicePerceptron>(stage, work));
  }
}

void DeviceTowers::Want(uint32_t examples, BufferList* memory) {
  for (const auto& tower : towers_) tower->Want(examples, memory);
  memory->WantArray<float>(&output_, size_t{examples} * output().stride);
  memory->WantArray<float>(&output_gradient_, size_t{examples} * output_gradient().stride);
  memory->WantArray<float>(&input_gradient_, size_t{examples} * input_gradient().stride);
}

Matrix DeviceTowers::output() const { return {output_.as<float>(), RowFloats(1)}; }
Matrix DeviceTowers::output_gradient() const {
  return {output_gradient_.as<float>(), RowFloats(1)};
}
Matrix DeviceTowers::input_gradient() const {
  return {input_gradient_.as<float>(), RowFloats(inputs_)};
}

absl::Status DeviceTowers::Forward(const StepBatch& batch, const Matrix& in, const Matrix& logits,
                                   ops::Passes passes, StreamHandle stream) {
  for (uint32_t t = 0; t < towers_.size(); ++t) {
    STRATA_RETURN_IF_ERROR(towers_[t]->Forward(batch, in, output(), passes, stream));
    STRATA_RETURN_IF_ERROR(
        CopyMatrix(work_->api(), {batch.examples, 1}, output(), logits.Columns(t), stream));
  }
  return absl::OkStatus();
}

absl::Status DeviceTowers::Backward(const StepBatch& batch, const Matrix& in,
                                    const Matrix& gradients, const Matrix& in_gradient,
                                    StreamHandle stream) {
  for (uint32_t t = 0; t < towers_.size(); ++t) {
    STRATA_RETURN_IF_ERROR(CopyMatrix(work_->api(), {batch.examples, 1}, gradients.Columns(t),
                                      output_gradient(), stream));
    // The first tower's begins the sum.
    const Matrix to = t == 0 ? in_gradient : input_gradient();
    STRATA_RETURN_IF_ERROR(
        towers_[t]->Backward(batch, {in, output(), output_gradient(), to}, stream));
    if (t == 0) continue;
    STRATA_RETURN_IF_ERROR(
        AddMatrix(work_->api(), {batch.examples, inputs_}, to, in_gradient, stream));
  }
  return absl::OkStatus();
}

}  // namespace strata::device
