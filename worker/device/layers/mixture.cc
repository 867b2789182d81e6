#include "worker/device/layers/mixture.h"

#include <cstddef>

#include "worker/device/layers/return_if_error.h"

namespace strata::device {

using ops::gpu::Buffer;
using ops::gpu::Matrix;
using ops::gpu::StreamHandle;

DeviceMixture::DeviceMixture(const MixtureStage& stage, LayerWork* work)
    : inputs_(stage.experts.front().widths.front()),
      vector_floats_(RowFloats(stage.width())),
      gate_floats_(RowFloats(static_cast<uint32_t>(stage.experts.size()))),
      width_(stage.width()),
      work_(work) {
  const auto make = [work](const std::vector<PerceptronStage>& from, Layers* to) {
    for (const PerceptronStage& layers : from) {
      to->push_back(std::make_unique<DevicePerceptron>(layers, work));
    }
  };
  make(stage.experts, &experts_);
  make(stage.gates, &gates_);
  make(stage.towers, &towers_);
}

void DeviceMixture::Want(uint32_t examples, BufferList* memory) {
  for (const Layers* layers : {&experts_, &gates_, &towers_}) {
    for (const auto& one : *layers) one->Want(examples, memory);
  }
  const auto want = [&](Buffer* buffer, uint32_t floats) {
    memory->WantArray<float>(buffer, size_t{examples} * floats);
  };
  want(&outputs_, experts() * vector_floats_);
  want(&output_gradients_, experts() * vector_floats_);
  want(&mixtures_, tasks() * vector_floats_);
  want(&mixture_gradients_, tasks() * vector_floats_);
  want(&weights_, tasks() * gate_floats_);
  want(&gate_gradients_, tasks() * gate_floats_);
  want(&logit_, RowFloats(1));
  want(&logit_gradient_, RowFloats(1));
  want(&input_gradient_, RowFloats(inputs_));
}

Matrix DeviceMixture::Vectors(const Buffer& buffer, uint32_t count) const {
  return {buffer.as<float>(), count * vector_floats_};
}
Matrix DeviceMixture::Gates(const Buffer& buffer) const {
  return {buffer.as<float>(), tasks() * gate_floats_};
}
Matrix DeviceMixture::Scalars(const Buffer& buffer) const {
  return {buffer.as<float>(), RowFloats(1)};
}

ops::gpu::MixtureTask DeviceMixture::Task(const StepBatch& batch) const {
  return {batch.examples, experts(), tasks(), width_, vector_floats_, gate_floats_};
}

absl::Status DeviceMixture::Forward(const StepBatch& batch, const Matrix& in, const Matrix& logits,
                                    ops::Passes passes, StreamHandle stream) {
  ops::gpu::CudaApi& api = work_->api();
  const Matrix outputs = Vectors(outputs_, experts()), mixtures = Vectors(mixtures_, tasks());
  const Matrix weights = Gates(weights_);
  for (uint32_t e = 0; e < experts(); ++e) {
    STRATA_RETURN_IF_ERROR(
        experts_[e]->Forward(batch, in, outputs.Columns(e * vector_floats_), passes, stream));
  }
  for (uint32_t t = 0; t < tasks(); ++t) {
    STRATA_RETURN_IF_ERROR(
        gates_[t]->Forward(batch, in, weights.Columns(t * gate_floats_), passes, stream));
  }
  STRATA_RETURN_IF_ERROR(MixtureWeights(api, Task(batch), weights, stream));
  STRATA_RETURN_IF_ERROR(MixExperts(api, Task(batch), weights, outputs, mixtures, stream));
  for (uint32_t t = 0; t < tasks(); ++t) {
    STRATA_RETURN_IF_ERROR(towers_[t]->Forward(batch, mixtures.Columns(t * vector_floats_),
                                               Scalars(logit_), passes, stream));
    STRATA_RETURN_IF_ERROR(
        CopyMatrix(api, {batch.examples, 1}, Scalars(logit_), logits.Columns(t), stream));
  }
  return absl::OkStatus();
}

absl::Status DeviceMixture::BackwardTowers(const StepBatch& batch, const Matrix& gradients,
                                           StreamHandle stream) {
  const Matrix mixtures = Vectors(mixtures_, tasks());
  const Matrix mixture_gradients = Vectors(mixture_gradients_, tasks());
  for (uint32_t t = 0; t < tasks(); ++t) {
    STRATA_RETURN_IF_ERROR(CopyMatrix(work_->api(), {batch.examples, 1}, gradients.Columns(t),
                                      Scalars(logit_gradient_), stream));
    const uint32_t column = t * vector_floats_;
    STRATA_RETURN_IF_ERROR(
        towers_[t]->Backward(batch,
                             {mixtures.Columns(column), Scalars(logit_), Scalars(logit_gradient_),
                              mixture_gradients.Columns(column)},
                             stream));
  }
  return absl::OkStatus();
}

absl::Status DeviceMixture::BackwardInputs(const StepBatch& batch, DevicePerceptron& layers,
                                           bool first, const DevicePerceptron::Ends& ends,
                                           StreamHandle stream) {
  if (first) return layers.Backward(batch, ends, stream);
  const Matrix part = {input_gradient_.as<float>(), RowFloats(inputs_)};
  STRATA_RETURN_IF_ERROR(
      layers.Backward(batch, {ends.in, ends.out, ends.out_gradient, part}, stream));
  return AddMatrix(work_->api(), {batch.examples, inputs_}, part, ends.in_gradient, stream);
}

absl::Status DeviceMixture::Backward(const StepBatch& batch, const Matrix& in,
                                     const Matrix& gradients, const Matrix& in_gradient,
                                     StreamHandle stream) {
  ops::gpu::CudaApi& api = work_->api();
  const Matrix outputs = Vectors(outputs_, experts());
  const Matrix output_gradients = Vectors(output_gradients_, experts());
  const Matrix mixture_gradients = Vectors(mixture_gradients_, tasks());
  const Matrix weights = Gates(weights_), gate_gradients = Gates(gate_gradients_);
  STRATA_RETURN_IF_ERROR(BackwardTowers(batch, gradients, stream));
  STRATA_RETURN_IF_ERROR(
      GateGradients(api, Task(batch), weights, outputs, mixture_gradients, gate_gradients, stream));
  STRATA_RETURN_IF_ERROR(
      ExpertGradients(api, Task(batch), weights, mixture_gradients, output_gradients, stream));
  for (uint32_t e = 0; e < experts(); ++e) {
    const uint32_t column = e * vector_floats_;
    STRATA_RETURN_IF_ERROR(BackwardInputs(
        batch, *experts_[e], e == 0,
        {in, outputs.Columns(column), output_gradients.Columns(column), in_gradient}, stream));
  }
  for (uint32_t t = 0; t < tasks(); ++t) {
    const uint32_t column = t * gate_floats_;
    STRATA_RETURN_IF_ERROR(BackwardInputs(
        batch, *gates_[t], false,
        {in, weights.Columns(column), gate_gradients.Columns(column), in_gradient}, stream));
  }
  return absl::OkStatus();
}

}  // namespace strata::device
