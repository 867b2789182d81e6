#include "worker/device/layers/perceptron.h"

#include <algorithm>

#include "worker/device/layers/return_if_error.h"

namespace strata::device {

using ops::gpu::Buffer;
using ops::gpu::MatmulEpilogue;
using ops::gpu::MatmulOperands;
using ops::gpu::MatmulShape;
using ops::gpu::Matrix;
using ops::gpu::StreamHandle;

namespace {

uint32_t MaskBits(uint32_t width) { return (width + 127) / 128 * 128; }

}  // namespace

void DevicePerceptron::Want(uint32_t examples, BufferList* memory) {
  const size_t layers = stage_.layers();
  for (std::vector<Buffer>* buffers :
       {&values_, &gradients_, &masks_, &rounded_values_, &rounded_weights_}) {
    buffers->resize(layers);
  }
  rounded_.resize(layers);
  const uint32_t rows = examples * stage_.rows;
  uint32_t widest = 0;
  for (size_t l = 0; l < layers; ++l) {
    work_->WantRounded({rows, stage_.widths[l]}, &rounded_values_[l], memory);
    work_->WantRounded({stage_.widths[l], stage_.widths[l + 1]}, &rounded_weights_[l], memory);
    widest = std::max(widest, stage_.widths[l + 1]);
    if (l == 0) continue;
    const uint32_t width = stage_.widths[l];
    memory->WantArray<float>(&values_[l], size_t{rows} * RowFloats(width));
    memory->WantArray<float>(&gradients_[l], size_t{rows} * RowFloats(width));
    memory->WantArray<uint8_t>(&masks_[l], size_t{rows} * MaskBits(width) / 8);
  }
  work_->WantRounded({rows, widest}, &rounded_gradient_, memory);
  work_->NeedsSums({rows, stage_.widths.back()});
}

MatmulShape DevicePerceptron::ForwardShape(const StepBatch& batch, size_t layer) const {
  MatmulShape shape;
  shape.m = Rows(batch);
  shape.k = stage_.widths[layer];
  shape.n = shape.ldb = stage_.widths[layer + 1];
  return shape;
}

Matrix DevicePerceptron::Values(size_t layer, const Matrix& in) const {
  if (layer == 0) return in;
  return {values_[layer].as<float>(), RowFloats(stage_.widths[layer])};
}

Matrix DevicePerceptron::Gradients(size_t layer, const Ends& ends) const {
  if (layer == 0) return ends.in_gradient;
  if (layer == stage_.layers()) return ends.out_gradient;
  return {gradients_[layer].as<float>(), RowFloats(stage_.widths[layer])};
}

absl::Status DevicePerceptron::Forward(const StepBatch& batch, const Matrix& in, const Matrix& out,
                                       ops::Passes passes, StreamHandle stream) {
  for (size_t l = 0; l < stage_.layers(); ++l) {
    const bool last = l + 1 == stage_.layers();
    const Matrix from = Values(l, in);
    const Matrix to = last ? out : Values(l + 1, in);
    MatmulShape shape = ForwardShape(batch, l);
    shape.lda = from.stride;
    shape.ldc = to.stride;
    shape.epilogue = MatmulEpilogue::kBiasRelu;
    MatmulOperands operands = {from.data, batch.tensors[stage_.first_tensor + 2 * l], to.data,
                               batch.tensors[stage_.first_tensor + 2 * l + 1], nullptr};
    if (last) {
      if (!stage_.relu_output) shape.epilogue = MatmulEpilogue::kBias;
    } else if (passes == ops::Passes::kForwardAndBackward) {
      shape.epilogue = MatmulEpilogue::kBiasReluMask;
      shape.mask_stride = MaskBits(shape.n);
      operands.mask = masks_[l + 1].as<void>();
    }
    STRATA_RETURN_IF_ERROR(RoundLayer(batch, shape, l, from, stream));
    STRATA_RETURN_IF_ERROR(work_->Multiply(shape, operands, rounded_[l], stream));
  }
  return absl::OkStatus();
}

// What both passes read of a layer.
absl::Status DevicePerceptron::RoundLayer(const StepBatch& batch, const MatmulShape& shape,
                                          size_t l, const Matrix& from, StreamHandle stream) {
  auto values = work_->Round(shape, {shape.m, shape.k}, from, rounded_values_[l], stream);
  if (!values.ok()) return values.status();
  const Matrix w = {batch.tensors[stage_.first_tensor + 2 * l], shape.n};
  auto weights = work_->Round(shape, {shape.k, shape.n}, w, rounded_weights_[l], stream);
  if (!weights.ok()) return weights.status();
  rounded_[l] = {*values, *weights};
  return absl::OkStatus();
}

absl::Status DevicePerceptron::Backward(const StepBatch& batch, const Ends& ends,
                                        StreamHandle stream) {
  const size_t layers = stage_.layers();
  const ops::gpu::Extent outputs = {Rows(batch), stage_.widths.back()};
  if (stage_.relu_output) {
    STRATA_RETURN_IF_ERROR(
        ReluGradient(work_->api(), outputs, ends.out, ends.out_gradient, stream));
  }
  // The other layers' biases get theirs from the product that makes their outputs' gradients.
  STRATA_RETURN_IF_ERROR(work_->Sums(outputs, ends.out_gradient,
                                     batch.tensor_gradients[stage_.first_tensor + 2 * layers - 1],
                                     stream));
  for (size_t l = layers; l-- > 0;) {
    STRATA_RETURN_IF_ERROR(BackwardLayer(batch, ends, l, stream));
  }
  return absl::OkStatus();
}

absl::Status DevicePerceptron::BackwardLayer(const StepBatch& batch, const Ends& ends, size_t l,
                                             StreamHandle stream) {
  const Matrix from = Values(l, ends.in), gradient = Gradients(l + 1, ends);
  const uint32_t inputs = stage_.widths[l], outputs = stage_.widths[l + 1];
  const size_t tensor = stage_.first_tensor + 2 * l;
  MatmulShape weights;
  weights.m = inputs;
  weights.n = weights.ldc = outputs;
  weights.k = Rows(batch);
  weights.transpose_a = true;
  weights.lda = from.stride;
  weights.ldb = gradient.stride;
  auto rounded = work_->Round(ForwardShape(batch, l), {Rows(batch), outputs}, gradient,
                              rounded_gradient_, stream);
  if (!rounded.ok()) return rounded.status();
  STRATA_RETURN_IF_ERROR(work_->Multiply(
      weights, {from.data, gradient.data, batch.tensor_gradients[tensor], nullptr, nullptr},
      {rounded_[l].a, *rounded}, stream));

  const Matrix to = Gradients(l, ends);
  if (to.data == nullptr) return absl::OkStatus();
  MatmulShape below;
  below.m = Rows(batch);
  below.n = inputs;
  below.k = below.ldb = outputs;
  below.transpose_b = true;
  below.lda = gradient.stride;
  below.ldc = to.stride;
  MatmulOperands operands = {gradient.data, batch.tensors[tensor], to.data, nullptr, nullptr};
  if (l > 0) {
    below.epilogue = MatmulEpilogue::kReluGradientBias;
    below.mask_stride = MaskBits(inputs);
    operands.bias = batch.tensor_gradients[tensor - 1];
    operands.mask = masks_[l].as<void>();
  }
  return work_->Multiply(below, operands, {*rounded, rounded_[l].b}, stream);
}

}  // namespace strata::device
