// The backward half of network.h.
#include "ops/cuda/nn/embedding.h"
#include "ops/cuda/nn/fm.h"
#include "ops/cuda/nn/pairwise.h"
#include "worker/device/layers/network.h"
#include "worker/device/layers/return_if_error.h"

namespace strata::device {

using ops::gpu::MatmulShape;
using ops::gpu::Matrix;
using ops::gpu::StreamHandle;

absl::Status DeviceNetwork::NumericProduct(const StepBatch& batch, const LayerWork::Columns& right,
                                           float* out, StreamHandle stream) {
  // Read only: a matrix is what is written and what is read alike.
  const Matrix numbers = {const_cast<float*>(batch.x.numeric), stages_.numeric};
  return work_.MultiplyColumns(batch.examples, {numbers, stages_.numeric}, right, out, stream);
}

absl::Status DeviceNetwork::BackwardFirstOrder(const StepBatch& batch, StreamHandle stream) {
  STRATA_RETURN_IF_ERROR(work_.Sums({batch.examples, stages_.tasks()}, gradients(),
                                    batch.tensor_gradients[0], stream));
  if (stages_.numeric > 0) {
    STRATA_RETURN_IF_ERROR(
        NumericProduct(batch, {gradients(), stages_.tasks()}, batch.tensor_gradients[1], stream));
  }
  if (heads_) return heads_->Backward(batch, sums_.as<float>(), gradients(), stream);
  return stages_.numeric_second_order ? BackwardNumericSquares(batch, stream) : absl::OkStatus();
}

// d / d embedding_jd = sum_i x_ij (g_i sum_id) - embedding_jd sum_i g_i x_ij^2.
absl::Status DeviceNetwork::BackwardNumericSquares(const StepBatch& batch, StreamHandle stream) {
  ops::gpu::NumericTerms terms;
  terms.examples = batch.examples;
  terms.numbers = stages_.numeric;
  terms.dim = stages_.dim;
  terms.gradient = gradients_.as<float>();
  terms.numeric = batch.x.numeric;
  terms.sums = sums_.as<float>();
  terms.scaled = scaled_.as<float>();
  terms.squares = squares_.as<float>();
  STRATA_RETURN_IF_ERROR(MakeNumericTerms(*api_, terms, stream));
  float* const out = batch.tensor_gradients[2];
  STRATA_RETURN_IF_ERROR(
      NumericProduct(batch, {{terms.scaled, stages_.dim}, stages_.dim}, out, stream));
  float* const square_sums = square_sums_.as<float>();
  STRATA_RETURN_IF_ERROR(work_.Sums({batch.examples, stages_.numeric},
                                    {terms.squares, stages_.numeric}, square_sums, stream));
  return SubtractSquares(*api_, stages_.numeric, stages_.dim, batch.tensors[2], square_sums, out,
                         stream);
}

absl::Status DeviceNetwork::BackwardLayers(const StepBatch& batch, StreamHandle stream) {
  if (mixture_) {
    STRATA_RETURN_IF_ERROR(
        mixture_->Backward(batch, matrix(), gradients(), matrix_gradient(), stream));
  }
  if (stages_.top) STRATA_RETURN_IF_ERROR(BackwardTop(batch, stream));
  for (const auto& attention : attentions_) {
    STRATA_RETURN_IF_ERROR(attention->Backward(batch, matrix(), matrix_gradient(), stream));
  }
  return stages_.dots ? BackwardDots(batch, stream) : absl::OkStatus();
}

absl::Status DeviceNetwork::BackwardTop(const StepBatch& batch, StreamHandle stream) {
  DevicePerceptron::Ends ends = {top_in(), top_out(), gradients(), top_in_gradient()};
  if (cross_ || towers_) ends.out_gradient = top_out_gradient();
  if (cross_) STRATA_RETURN_IF_ERROR(BackwardOutput(batch, stream));
  if (towers_) {
    STRATA_RETURN_IF_ERROR(
        towers_->Backward(batch, top_out(), gradients(), top_out_gradient(), stream));
  }
  STRATA_RETURN_IF_ERROR(top_->Backward(batch, ends, stream));
  return cross_ ? cross_->Backward(batch, matrix(), matrix_gradient(), stream) : absl::OkStatus();
}

absl::Status DeviceNetwork::BackwardDots(const StepBatch& batch, StreamHandle stream) {
  const ops::gpu::PairwiseTask task = {batch.examples, stages_.vectors, stages_.dim,
                                       matrix().data,  matrix().stride, top_in().stride};
  STRATA_RETURN_IF_ERROR(PairwiseBackward(*api_, task,
                                          top_in_gradient().data + stages_.bottom_width(),
                                          matrix_gradient().data, stream));
  if (!bottom_) return absl::OkStatus();
  // By top, which read bottom's outputs, and by the dots.
  STRATA_RETURN_IF_ERROR(AddMatrix(*api_, {batch.examples, stages_.dim}, matrix_gradient(),
                                   top_in_gradient(), stream));
  const Matrix numbers = {const_cast<float*>(batch.x.numeric), stages_.numeric};
  return bottom_->Backward(batch, {numbers, matrix(), top_in_gradient(), {}}, stream);
}

absl::Status DeviceNetwork::BackwardOutput(const StepBatch& batch, StreamHandle stream) {
  const uint32_t width = stages_.cross->width, deep = stages_.top->widths.back();
  const size_t tasks = stages_.tasks();
  const float* const weight = batch.tensors[stages_.output_tensor];
  float* const to = batch.tensor_gradients[stages_.output_tensor];
  // One part of the output layer: its rows' gradient and its weights'.
  const auto part = [&](const LayerWork::Columns& rows, const void* weights, const Matrix& back,
                        float* weights_gradient) {
    MatmulShape outer = OutputGradientShape(batch.examples, rows.count);
    outer.ldc = back.stride;
    STRATA_RETURN_IF_ERROR(
        work_.Multiply(outer, {gradients().data, weights, back.data, nullptr, nullptr}, stream));
    return work_.MultiplyColumns(batch.examples, rows, {gradients(), stages_.tasks()},
                                 weights_gradient, stream);
  };
  STRATA_RETURN_IF_ERROR(part({cross_->output(), width}, weight, cross_->output_gradient(), to));
  STRATA_RETURN_IF_ERROR(part({top_out(), deep}, output_weight_.as<void>(), top_out_gradient(),
                              output_weight_gradient_.as<float>()));
  STRATA_RETURN_IF_ERROR(api_->CopyAsync(to + width * tasks, output_weight_gradient_.as<void>(),
                                         deep * tasks * sizeof(float), stream));
  return work_.Sums({batch.examples, stages_.tasks()}, gradients(),
                    batch.tensor_gradients[stages_.output_tensor + 1], stream);
}

absl::Status DeviceNetwork::BackwardRows(const StepBatch& batch, StreamHandle stream) {
  if (vectors_) return vectors_->Backward(batch, matrix_gradient(), *coalescer_, stream);
  const ops::SparseExamples x = Features(batch);
  const ops::gpu::GroupedKeys& keys = batch.pooled() ? batch.runs : batch.keys;
  const ops::gpu::RowSums out = batch.pooled()
                                    ? ops::gpu::RowSums{run_gradients_.as<float>(), stages_.row_dim}
                                    : batch.row_gradients;
  const uint32_t* const example = example_.as<uint32_t>();
  const ops::FieldMatrix by_field = {
      stages_.matrix ? matrix_gradient().data + stages_.embeddings_at : nullptr,
      matrix_gradient().stride, stages_.matrix ? stages_.fields : 0};
  if (stages_.second_order) {
    ops::FmGradientInputs in;
    in.gradient = gradients_.as<float>();
    in.sums = sums_.as<float>();
    in.example = example;
    in.embeddings = by_field.data;
    in.embeddings_stride = by_field.stride;
    in.fields = by_field.fields;
    const ops::gpu::FmTask task = {x, batch.examples, stages_.dim};
    STRATA_RETURN_IF_ERROR(heads_ ? ops::gpu::FmTermGradients(*api_, *coalescer_, keys, task, in,
                                                              heads_->term_gradients(), out.rows,
                                                              out.stride, stream)
                                  : ops::gpu::FmGradients(*api_, *coalescer_, keys, task, in,
                                                          out.rows, out.stride, stream));
  } else if (stages_.matrix) {
    STRATA_RETURN_IF_ERROR(ops::gpu::EmbeddingGradients(*api_, *coalescer_, keys, x, stages_.dim,
                                                        by_field, example, out, stream));
  }
  // Of one task's second order, it has given them, too.
  if (stages_.first_order && (heads_ || !stages_.second_order)) {
    STRATA_RETURN_IF_ERROR(ops::gpu::WeightGradients(*api_, *coalescer_, keys, x, gradients(),
                                                     stages_.tasks(), example,
                                                     {out.rows + stages_.dim, out.stride}, stream));
  }
  return batch.pooled() ? BackwardPooled(batch, stream) : absl::OkStatus();
}

// From runs on to their features.
absl::Status DeviceNetwork::BackwardPooled(const StepBatch& batch, StreamHandle stream) {
  const float* const gradient = run_gradients_.as<float>();
  if (batch.max_fields != nullptr) {
    return MaxPooledGradients(*api_, *coalescer_, batch.keys, batch.x.values, batch.run_of,
                              MaxRunsOf(batch), max_from_.as<uint32_t>(), gradient, stages_.row_dim,
                              batch.row_gradients, stream);
  }
  return ops::gpu::PooledGradients(*api_, *coalescer_, batch.keys, batch.x.values, batch.run_of,
                                   gradient, stages_.row_dim, batch.row_gradients, stream);
}

}  // namespace strata::device
