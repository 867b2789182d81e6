#include "worker/device/layers/network.h"

#include <algorithm>
#include <utility>

#include "ops/cuda/nn/embedding.h"
#include "ops/cuda/nn/fm.h"
#include "ops/cuda/nn/losses.h"
#include "ops/cuda/nn/pairwise.h"
#include "ops/cuda/rows/pool.h"
#include "proto/job/fields/task_spec.h"
#include "worker/device/layers/return_if_error.h"

namespace strata::device {

using ops::Passes;
using ops::gpu::MatmulEpilogue;
using ops::gpu::MatmulShape;
using ops::gpu::Matrix;
using ops::gpu::StreamHandle;

DeviceNetwork::DeviceNetwork(const Stages& stages, ops::gpu::CudaApi* api,
                             ops::gpu::MatmulPrecision precision)
    : stages_(stages), api_(api), work_(api, precision) {
  if (stages_.bottom) bottom_.emplace(*stages_.bottom, &work_);
  if (stages_.top) top_.emplace(*stages_.top, &work_);
  if (stages_.cross) cross_.emplace(*stages_.cross, &work_);
  if (!stages_.towers.empty()) towers_.emplace(stages_.towers, &work_);
  if (stages_.heads()) heads_.emplace(&stages_, &work_);
  if (stages_.field_vectors) vectors_.emplace(&stages_, api_);
  if (stages_.mixture) mixture_.emplace(*stages_.mixture, &work_);
  for (uint32_t s = 0; s < stages_.sequences(); ++s) {
    attentions_.push_back(
        std::make_unique<DeviceAttention>(stages_.attentions[s], s, stages_.sequences(), &work_));
  }
}

void DeviceNetwork::Want(const StepShape& most, BufferList* memory) {
  const size_t examples = most.examples;
  if (bottom_) bottom_->Want(most.examples, memory);
  if (top_) top_->Want(most.examples, memory);
  if (cross_) cross_->Want(most.examples, memory);
  if (towers_) towers_->Want(most.examples, memory);
  if (heads_) heads_->Want(most.examples, memory);
  if (vectors_) vectors_->Want(most, memory);
  if (mixture_) mixture_->Want(most.examples, memory);
  for (const auto& attention : attentions_) attention->Want(most.examples, memory);
  const uint32_t tasks = stages_.tasks();
  work_.NeedsSums({most.examples, std::max(tasks, stages_.numeric)});
  if (stages_.first_order) work_.NeedsColumnProduct(most.examples, stages_.numeric, tasks);
  if (stages_.numeric_second_order) {
    work_.NeedsColumnProduct(most.examples, stages_.numeric, stages_.dim);
  }
  if (cross_) {
    for (const uint32_t inputs : {stages_.cross->width, stages_.top->widths.back()}) {
      work_.NeedsProduct(OutputShape(most.examples, inputs));
      work_.NeedsProduct(OutputGradientShape(most.examples, inputs));
      work_.NeedsColumnProduct(most.examples, inputs, tasks);
    }
  }
  work_.Want(memory);
  memory->WantArray<float>(&logits_, examples * logits().stride);
  memory->WantArray<float>(&gradients_, examples * logits().stride);
  memory->WantArray<uint32_t>(&example_, vectors_ ? 0 : most.features);
  if (stages_.second_order) memory->WantArray<float>(&sums_, examples * stages_.dim);
  if (stages_.matrix) {
    memory->WantArray<float>(&matrix_, examples * RowFloats(stages_.matrix_width));
    memory->WantArray<float>(&matrix_gradient_, examples * RowFloats(stages_.matrix_width));
  }
  if (stages_.dots) {
    memory->WantArray<float>(&dots_in_, examples * RowFloats(stages_.top_inputs()));
    memory->WantArray<float>(&dots_in_gradient_, examples * RowFloats(stages_.top_inputs()));
  }
  if (stages_.top) {
    const uint32_t outputs = stages_.top->widths.back();
    memory->WantArray<float>(&top_out_, examples * RowFloats(outputs));
    memory->WantArray<float>(&top_out_gradient_, examples * RowFloats(outputs));
    memory->WantArray<float>(&output_weight_, size_t{outputs} * tasks);
    memory->WantArray<float>(&output_weight_gradient_, size_t{outputs} * tasks);
  }
  if (stages_.numeric_second_order && !heads_) {
    memory->WantArray<float>(&scaled_, examples * stages_.dim);
    memory->WantArray<float>(&squares_, examples * stages_.numeric);
    memory->WantArray<float>(&square_sums_, stages_.numeric);
  }
  memory->WantArray<float>(&pooled_rows_, size_t{most.runs} * stages_.row_dim);
  memory->WantArray<float>(&run_gradients_, size_t{most.runs} * stages_.row_dim);
  const size_t max_runs = stages_.max_fields.empty() ? 0 : most.runs;
  memory->WantArray<uint32_t>(&max_from_, max_runs * stages_.row_dim);
}

MatmulShape DeviceNetwork::OutputShape(uint32_t examples, uint32_t inputs) const {
  MatmulShape shape;
  shape.m = examples;
  shape.n = shape.ldb = stages_.tasks();
  shape.k = inputs;
  shape.ldc = logits().stride;
  return shape;
}

MatmulShape DeviceNetwork::OutputGradientShape(uint32_t examples, uint32_t inputs) const {
  MatmulShape shape;
  shape.m = examples;
  shape.n = inputs;
  shape.k = stages_.tasks();
  shape.lda = gradients().stride;
  // The weights are (inputs, tasks): of one task a row as well.
  shape.transpose_b = shape.k > 1;
  shape.ldb = shape.transpose_b ? shape.k : inputs;
  return shape;
}

ops::gpu::Coalescer::Options DeviceNetwork::CoalescerOptions(const StepShape& most) const {
  ops::gpu::Coalescer::Options options;
  options.most_features = most.features;
  options.most_dim = stages_.row_dim;
  options.key_bytes = 4;
  options.groups = false;  // the router has grouped the keys
  return options;
}

void DeviceNetwork::Open(std::unique_ptr<ops::gpu::Blas> blas,
                         std::unique_ptr<ops::gpu::Coalescer> coalescer) {
  work_.Open(std::move(blas));
  coalescer_ = std::move(coalescer);
}

Matrix DeviceNetwork::logits() const {
  const uint32_t tasks = stages_.tasks();
  return {logits_.as<float>(), tasks == 1 ? 1 : RowFloats(tasks)};
}
Matrix DeviceNetwork::gradients() const { return {gradients_.as<float>(), logits().stride}; }
Matrix DeviceNetwork::matrix() const {
  return {matrix_.as<float>(), RowFloats(stages_.matrix_width)};
}
Matrix DeviceNetwork::matrix_gradient() const {
  return {matrix_gradient_.as<float>(), RowFloats(stages_.matrix_width)};
}
Matrix DeviceNetwork::top_in() const {
  return stages_.dots ? Matrix{dots_in_.as<float>(), RowFloats(stages_.top_inputs())} : matrix();
}
Matrix DeviceNetwork::top_in_gradient() const {
  return stages_.dots ? Matrix{dots_in_gradient_.as<float>(), RowFloats(stages_.top_inputs())}
                      : matrix_gradient();
}
Matrix DeviceNetwork::top_out() const {
  return {top_out_.as<float>(), RowFloats(stages_.top->widths.back())};
}
Matrix DeviceNetwork::top_out_gradient() const {
  return {top_out_gradient_.as<float>(), RowFloats(stages_.top->widths.back())};
}

absl::Status DeviceNetwork::Run(const StepBatch& batch, Passes passes, StreamHandle stream) {
  STRATA_RETURN_IF_ERROR(PoolRows(batch, passes, stream));
  STRATA_RETURN_IF_ERROR(ForwardRows(batch, passes, stream));
  STRATA_RETURN_IF_ERROR(ForwardLayers(batch, passes, stream));
  if (passes == Passes::kForward) return TaskPredictions(*api_, Outputs(batch), stream);
  STRATA_RETURN_IF_ERROR(Loss(batch, stream));
  if (stages_.first_order) STRATA_RETURN_IF_ERROR(BackwardFirstOrder(batch, stream));
  STRATA_RETURN_IF_ERROR(BackwardLayers(batch, stream));
  return BackwardRows(batch, stream);
}

ops::gpu::MaxRuns DeviceNetwork::MaxRunsOf(const StepBatch& batch) const {
  return {batch.run_first,
          batch.run_fields,
          {batch.counts + kRuns, batch.runs.features},
          batch.max_fields,
          static_cast<uint32_t>(stages_.max_fields.size())};
}

absl::Status DeviceNetwork::PoolRows(const StepBatch& batch, Passes passes, StreamHandle stream) {
  if (!batch.pooled()) return absl::OkStatus();
  ops::gpu::PoolArguments pool;
  // Read only: a table's rows are written by others.
  pool.table = {const_cast<float*>(batch.x.rows), batch.x.stride};
  pool.dim = stages_.row_dim;
  pool.row_of = batch.x.row;
  pool.values = batch.x.values;
  pool.first = batch.run_first;
  pool.bags = {batch.counts + kRuns, batch.runs.features};
  pool.out = pooled_rows_.as<float>();
  pool.out_stride = stages_.row_dim;
  STRATA_RETURN_IF_ERROR(ops::gpu::Pool(*api_, pool, stream));
  if (batch.max_fields == nullptr) return absl::OkStatus();
  return MaxPool(*api_, batch.x, MaxRunsOf(batch), stages_.row_dim, pool.out,
                 passes == Passes::kForward ? nullptr : max_from_.as<uint32_t>(), stream);
}

ops::SparseExamples DeviceNetwork::Features(const StepBatch& batch) const {
  ops::SparseExamples x = batch.x;
  if (!batch.pooled()) return x;
  x.offsets = batch.run_offsets;
  x.fields = batch.run_fields;
  x.row = static_cast<const uint32_t*>(batch.runs.keys);
  x.values = nullptr;
  x.rows = pooled_rows_.as<float>();
  x.stride = stages_.row_dim;
  return x;
}

ops::gpu::LinearTask DeviceNetwork::Linear(const StepBatch& batch) const {
  return {stages_.dim, stages_.tasks(), batch.tensors[0],
          stages_.numeric > 0 ? batch.tensors[1] : nullptr};
}

absl::Status DeviceNetwork::ForwardRows(const StepBatch& batch, Passes passes,
                                        StreamHandle stream) {
  if (vectors_) return vectors_->Forward(batch, matrix(), passes, stream);
  const ops::SparseExamples x = Features(batch);
  const std::vector<float*>& t = batch.tensors;
  uint32_t* const example = example_.as<uint32_t>();
  if (stages_.second_order) {
    ops::FmOutputs out;
    out.logits = logits_.as<float>();
    out.sums = sums_.as<float>();
    out.example = example;
    if (stages_.matrix) {
      out.embeddings = matrix().data + stages_.embeddings_at;
      out.embeddings_stride = matrix().stride;
      out.fields = stages_.fields;
    }
    if (heads_) {
      STRATA_RETURN_IF_ERROR(ops::gpu::LinearForward(*api_, x, batch.examples, Linear(batch),
                                                     logits(), nullptr, stream));
      return heads_->Forward(batch, x, out, logits(), stream);
    }
    return ops::gpu::FmForward(*api_, {x, batch.examples, stages_.dim}, t[0],
                               Linear(batch).numeric_weight,
                               stages_.numeric_second_order ? t[2] : nullptr, out, stream);
  }
  if (stages_.matrix) {
    STRATA_RETURN_IF_ERROR(ops::gpu::GatherEmbeddings(
        *api_, x, batch.examples, stages_.dim,
        {matrix().data + stages_.embeddings_at, matrix().stride, stages_.fields}, example, stream));
  }
  if (!stages_.first_order) return absl::OkStatus();
  return ops::gpu::LinearForward(*api_, x, batch.examples, Linear(batch), logits(),
                                 stages_.matrix ? nullptr : example, stream);
}

absl::Status DeviceNetwork::ForwardLayers(const StepBatch& batch, Passes passes,
                                          StreamHandle stream) {
  if (stages_.matrix) STRATA_RETURN_IF_ERROR(ForwardMatrix(batch, passes, stream));
  if (mixture_) return mixture_->Forward(batch, matrix(), logits(), passes, stream);
  if (!stages_.top) return absl::OkStatus();
  if (cross_) STRATA_RETURN_IF_ERROR(cross_->Forward(batch, matrix(), stream));
  STRATA_RETURN_IF_ERROR(top_->Forward(batch, top_in(), top_out(), passes, stream));
  if (towers_) return towers_->Forward(batch, top_out(), logits(), passes, stream);
  return ForwardOutput(batch, stream);
}

// What layers read beside the fields' vectors.
absl::Status DeviceNetwork::ForwardMatrix(const StepBatch& batch, Passes passes,
                                          StreamHandle stream) {
  for (const auto& attention : attentions_) {
    STRATA_RETURN_IF_ERROR(attention->Forward(batch, matrix(), passes, stream));
  }
  if (stages_.dots) return ForwardDots(batch, passes, stream);
  if (stages_.numeric == 0) return absl::OkStatus();
  // Read only: a matrix is what is written and what is read alike.
  const Matrix numbers = {const_cast<float*>(batch.x.numeric), stages_.numeric};
  return CopyMatrix(*api_, {batch.examples, stages_.numeric}, numbers,
                    matrix().Columns(stages_.numbers_at()), stream);
}

absl::Status DeviceNetwork::ForwardDots(const StepBatch& batch, Passes passes,
                                        StreamHandle stream) {
  if (bottom_) {
    const Matrix numbers = {const_cast<float*>(batch.x.numeric), stages_.numeric};
    STRATA_RETURN_IF_ERROR(bottom_->Forward(batch, numbers, matrix(), passes, stream));
    STRATA_RETURN_IF_ERROR(
        CopyMatrix(*api_, {batch.examples, stages_.dim}, matrix(), top_in(), stream));
  }
  const ops::gpu::PairwiseTask task = {batch.examples, stages_.vectors, stages_.dim,
                                       matrix().data,  matrix().stride, top_in().stride};
  return PairwiseForward(*api_, task, top_in().data + stages_.bottom_width(), stream);
}

absl::Status DeviceNetwork::ForwardOutput(const StepBatch& batch, StreamHandle stream) {
  if (!cross_) {
    const ops::gpu::Extent extent = {batch.examples, stages_.tasks()};
    return stages_.first_order ? AddMatrix(*api_, extent, top_out(), logits(), stream)
                               : CopyMatrix(*api_, extent, top_out(), logits(), stream);
  }
  // Two products into the same columns; the second part's weights are copied to where they are
  // aligned.
  const uint32_t width = stages_.cross->width, deep = stages_.top->widths.back();
  const float* const weight = batch.tensors[stages_.output_tensor];
  const size_t tasks = stages_.tasks();
  STRATA_RETURN_IF_ERROR(api_->CopyAsync(output_weight_.as<void>(), weight + width * tasks,
                                         deep * tasks * sizeof(float), stream));
  MatmulShape shape = OutputShape(batch.examples, width);
  shape.lda = cross_->output().stride;
  shape.epilogue = MatmulEpilogue::kBias;
  STRATA_RETURN_IF_ERROR(work_.Multiply(shape,
                                        {cross_->output().data, weight, logits().data,
                                         batch.tensors[stages_.output_tensor + 1], nullptr},
                                        stream));
  shape = OutputShape(batch.examples, deep);
  shape.lda = top_out().stride;
  shape.add = true;
  return work_.Multiply(
      shape, {top_out().data, output_weight_.as<void>(), logits().data, nullptr, nullptr}, stream);
}

ops::gpu::TaskOutputs DeviceNetwork::Outputs(const StepBatch& batch) const {
  return {stages_.losses, batch.examples, logits(), batch.predictions};
}

absl::Status DeviceNetwork::Loss(const StepBatch& batch, StreamHandle stream) {
  ops::gpu::TaskLabels labels;
  labels.count = batch.counts + kExamples;
  labels.labels = batch.labels;
  labels.weights = batch.weights;
  labels.weight_scale = 1.0f / kWeightUnit;
  labels.costs = batch.losses;
  labels.gradients = gradients();
  return TaskLosses(*api_, Outputs(batch), labels, stream);
}

}  // namespace strata::device
