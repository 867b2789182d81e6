#include "worker/device/layers/cross.h"

#include "worker/device/layers/return_if_error.h"

namespace strata::device {

using ops::gpu::Buffer;
using ops::gpu::Extent;
using ops::gpu::MatmulEpilogue;
using ops::gpu::MatmulShape;
using ops::gpu::Matrix;
using ops::gpu::StreamHandle;

namespace {

// C (m, n) = A (m, k) B, and other shapes by what is changed of it.
MatmulShape ShapeOf(uint32_t m, uint32_t n, uint32_t k, const Matrix& a, uint32_t ldb,
                    const Matrix& c) {
  MatmulShape shape;
  shape.m = m;
  shape.n = n;
  shape.k = k;
  shape.lda = a.stride;
  shape.ldb = ldb;
  shape.ldc = c.stride;
  return shape;
}

}  // namespace

void DeviceCross::Want(uint32_t examples, BufferList* memory) {
  const size_t wide = size_t{examples} * RowFloats(stage_.width);
  const size_t narrow = size_t{examples} * RowFloats(stage_.rank);
  for (std::vector<Buffer>* buffers : {&projected_, &factor_, &next_}) {
    buffers->resize(stage_.layers);
  }
  for (uint32_t l = 0; l < stage_.layers; ++l) {
    memory->WantArray<float>(&projected_[l], narrow);
    memory->WantArray<float>(&factor_[l], wide);
    memory->WantArray<float>(&next_[l], wide);
  }
  memory->WantArray<float>(&gradient_, wide);
  memory->WantArray<float>(&factor_gradient_, wide);
  memory->WantArray<float>(&projected_gradient_, narrow);
  // The largest of all the products' factors, on either side.
  const uint32_t widest = stage_.width > stage_.rank ? stage_.width : stage_.rank;
  MatmulShape both;
  both.m = examples;
  both.k = both.n = widest;
  work_->NeedsProduct(both);
  both.m = both.n = widest;
  both.k = examples;
  both.transpose_a = true;
  work_->NeedsProduct(both);
  work_->NeedsSums({examples, stage_.width});
}

Matrix DeviceCross::Wide(const Buffer& buffer) const {
  return {buffer.as<float>(), RowFloats(stage_.width)};
}
Matrix DeviceCross::Narrow(const Buffer& buffer) const {
  return {buffer.as<float>(), RowFloats(stage_.rank)};
}
Matrix DeviceCross::Input(size_t layer, const Matrix& x0) const {
  return layer == 0 ? x0 : Wide(next_[layer - 1]);
}
Matrix DeviceCross::output() const { return Wide(next_.back()); }
Matrix DeviceCross::output_gradient() const { return Wide(gradient_); }

absl::Status DeviceCross::Forward(const StepBatch& batch, const Matrix& x0, StreamHandle stream) {
  for (size_t l = 0; l < stage_.layers; ++l) {
    size_t tensor = Tensor(l);
    const Matrix x = Input(l, x0);
    Matrix in = x;
    uint32_t inputs = stage_.width;
    if (stage_.rank > 0) {
      in = Narrow(projected_[l]);
      inputs = stage_.rank;
      STRATA_RETURN_IF_ERROR(
          work_->Multiply(ShapeOf(batch.examples, stage_.rank, stage_.width, x, stage_.rank, in),
                          {x.data, batch.tensors[tensor], in.data, nullptr, nullptr}, stream));
      ++tensor;
    }
    const Matrix factor = Wide(factor_[l]);
    MatmulShape shape = ShapeOf(batch.examples, stage_.width, inputs, in, stage_.width, factor);
    shape.epilogue = MatmulEpilogue::kBias;
    STRATA_RETURN_IF_ERROR(work_->Multiply(
        shape, {in.data, batch.tensors[tensor], factor.data, batch.tensors[tensor + 1], nullptr},
        stream));
    STRATA_RETURN_IF_ERROR(CrossForward(work_->api(), {{batch.examples, stage_.width}, x0, factor},
                                        x, Wide(next_[l]), stream));
  }
  return absl::OkStatus();
}

absl::Status DeviceCross::Backward(const StepBatch& batch, const Matrix& x0,
                                   const Matrix& input_gradient, StreamHandle stream) {
  for (size_t l = stage_.layers; l-- > 0;) {
    STRATA_RETURN_IF_ERROR(BackwardLayer(batch, x0, input_gradient, l, stream));
  }
  return AddMatrix(work_->api(), {batch.examples, stage_.width}, output_gradient(), input_gradient,
                   stream);
}

absl::Status DeviceCross::BackwardLayer(const StepBatch& batch, const Matrix& x0,
                                        const Matrix& input_gradient, size_t l,
                                        StreamHandle stream) {
  const uint32_t examples = batch.examples, width = stage_.width, rank = stage_.rank;
  const Matrix x = Input(l, x0), g = output_gradient(), t = Wide(factor_gradient_);
  STRATA_RETURN_IF_ERROR(CrossBackward(work_->api(), {{examples, width}, x0, Wide(factor_[l])}, g,
                                       t, input_gradient, stream));
  const size_t tensor = Tensor(l) + (rank > 0 ? 1 : 0);  // the weight
  STRATA_RETURN_IF_ERROR(
      work_->Sums({examples, width}, t, batch.tensor_gradients[tensor + 1], stream));
  const Matrix in = rank > 0 ? Narrow(projected_[l]) : x;
  const uint32_t inputs = rank > 0 ? rank : width;
  MatmulShape weights = ShapeOf(inputs, width, examples, in, t.stride, {nullptr, width});
  weights.transpose_a = true;
  STRATA_RETURN_IF_ERROR(work_->Multiply(
      weights, {in.data, t.data, batch.tensor_gradients[tensor], nullptr, nullptr}, stream));
  // The gradient by x_l goes on from what came through the sum.
  MatmulShape below = ShapeOf(examples, inputs, width, t, width, g);
  below.transpose_b = true;
  if (rank == 0) {
    below.add = true;
    return work_->Multiply(below, {t.data, batch.tensors[tensor], g.data, nullptr, nullptr},
                           stream);
  }
  const Matrix q = Narrow(projected_gradient_);
  below.ldc = q.stride;
  STRATA_RETURN_IF_ERROR(
      work_->Multiply(below, {t.data, batch.tensors[tensor], q.data, nullptr, nullptr}, stream));
  MatmulShape v = ShapeOf(width, rank, examples, x, q.stride, {nullptr, rank});
  v.transpose_a = true;
  STRATA_RETURN_IF_ERROR(work_->Multiply(
      v, {x.data, q.data, batch.tensor_gradients[tensor - 1], nullptr, nullptr}, stream));
  MatmulShape through = ShapeOf(examples, width, rank, q, rank, g);
  through.transpose_b = true;
  through.add = true;
  return work_->Multiply(through, {q.data, batch.tensors[tensor - 1], g.data, nullptr, nullptr},
                         stream);
}

}  // namespace strata::device
