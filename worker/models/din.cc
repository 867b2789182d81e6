#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "ops/cpu_features.h"
#include "ops/nn/attention.h"
#include "ops/nn/gemm.h"
#include "ops/nn/layer_memory.h"
#include "worker/models/field_input.h"
#include "worker/models/model_kinds.h"
#include "worker/models/model_parts.h"
#include "worker/models/perceptron.h"

namespace strata {
namespace {

using ops::Passes;

// One sequence: the perceptron that weighs its values has a row of each value of the batch.
class Attention {
 public:
  Attention(const ModelTables& tables, size_t number, const FieldInput& input, size_t first_tensor)
      : number_(number),
        sequences_(tables.sequences.size()),
        dim_(tables.field_dims[tables.sequences[number].field]),
        target_column_(input.column_of(tables.sequences[number].target)),
        sum_column_(input.column_of(tables.sequences[number].field)),
        layers_(LayerWidths(size_t{4} * dim_, tables.attention_hidden, 1),
                ops::Mlp::Output::kLinear, first_tensor) {}

  void Prepare(const ModelInputs& in, Passes passes, ops::Parallel* parallel) {
    const Batch& batch = *in.batch;
    ResizeExactly(batch.size + 1, &first_);
    first_[0] = 0;
    for (size_t i = 0; i < batch.size; ++i) {
      first_[i + 1] = first_[i] + batch.sequence_length[i * sequences_ + number_];
    }
    layers_.Prepare(in, first_[batch.size], passes, parallel);
  }

  // Writes the weighed sum to where the sequence's field stands.
  void Forward(size_t begin, size_t end, FieldInput* input) {
    for (size_t i = begin; i < end; ++i) {
      const float* const x = input->values(i);
      ops::AttentionInputs(ShapeOf(i), x + ValuesColumn(*input, i), x + target_column_,
                           layers_.input(first_[i]), layers_.input_stride());
    }
    ForRows(begin, end, [&](size_t first, size_t rows) { layers_.Forward(first, rows); });
    for (size_t i = begin; i < end; ++i) {
      float* const x = input->values(i);
      ops::AttentionSum(ShapeOf(i), x + ValuesColumn(*input, i), layers_.output(first_[i]),
                        layers_.output_stride(), x + sum_column_);
    }
  }

  // From the gradient by the sum to those by the values, which it writes, and by the target, to
  // which it adds.
  void Backward(size_t begin, size_t end, FieldInput* input) {
    for (size_t i = begin; i < end; ++i) {
      ops::AttentionWeightGradients(ShapeOf(i), input->values(i) + ValuesColumn(*input, i),
                                    input->gradients(i) + sum_column_,
                                    layers_.output_gradient(first_[i]), layers_.output_stride());
    }
    ForRows(begin, end, [&](size_t first, size_t rows) { layers_.Backward(first, rows); });
    for (size_t i = begin; i < end; ++i) {
      ops::AttentionGradients g;
      g.v = input->values(i) + ValuesColumn(*input, i);
      g.q = input->values(i) + target_column_;
      g.a = layers_.output(first_[i]);
      g.a_stride = layers_.output_stride();
      g.sum_gradient = input->gradients(i) + sum_column_;
      g.inputs = layers_.input_gradient(first_[i]);
      g.inputs_stride = layers_.input_stride();
      ops::AttentionBackward(ShapeOf(i), g, input->gradients(i) + ValuesColumn(*input, i),
                             input->gradients(i) + target_column_);
    }
  }

  void AppendGradients(const ModelGradients& out, std::vector<ops::TransposedProduct>* products) {
    layers_.AppendGradients(out, products);
  }

 private:
  ops::AttentionShape ShapeOf(size_t example) const {
    return {static_cast<uint32_t>(first_[example + 1] - first_[example]), dim_};
  }

  size_t ValuesColumn(const FieldInput& input, size_t example) const {
    return input.first_value_of(number_, example);
  }

  template <typename Body>
  void ForRows(size_t begin, size_t end, Body body) {
    for (size_t row = first_[begin]; row < first_[end]; row += layers_.block_rows()) {
      body(row, std::min(layers_.block_rows(), first_[end] - row));
    }
  }

  const size_t number_, sequences_;
  const uint32_t dim_;
  const size_t target_column_, sum_column_;  // of FieldInput's rows
  Perceptron layers_;
  std::vector<size_t> first_;  // (examples + 1): rows of layers_
};

// Tensors: sequence by sequence those of its attention's layers; then weight and bias of each layer
// above, and of the output.
//
// A step goes through the batch in blocks of examples: the fields' vectors and the sequences'
// values, attention, the layers above, losses, and the same backward. Then come the weights'
// gradients over the whole batch, and the rows'.
class Din : public Model {
 public:
  explicit Din(const ModelTables& tables)
      : input_(tables),
        layers_(LayerWidths(tables.example_width(), tables.hidden, tables.task_count()),
                ops::Mlp::Output::kLinear,
                tables.sequences.size() * 2 * (tables.attention_hidden.size() + 1)),
        gemm_(ops::GemmKernelOf(ops::ActiveIsaLevel())),
        scratch_(tables) {
    for (size_t s = 0; s < tables.sequences.size(); ++s) {
      attentions_.push_back(std::make_unique<Attention>(
          tables, s, input_, s * 2 * (tables.attention_hidden.size() + 1)));
    }
  }

  absl::StatusOr<double> TrainStep(const ModelInputs& in, const ModelGradients& out,
                                   float* predictions, ops::Parallel* parallel) override {
    Prepare(in, Passes::kForwardAndBackward, parallel);
    TrainBlocks(
        in.batch->size, layers_.block_rows(), parallel, in.passes,
        [&](size_t begin, size_t end) {
          Forward(in, begin, end);
          scratch_.Train(*in.batch, begin, end - begin, predictions);
        },
        [&](size_t begin, size_t end) { Backward(begin, end); });
    products_.clear();
    for (const auto& attention : attentions_) attention->AppendGradients(out, &products_);
    layers_.AppendGradients(out, &products_);
    gemm_.Run(products_, parallel);
    input_.RowGradients(in, parallel, out.rows);
    return scratch_.SumLosses();
  }

  absl::Status Predict(const ModelInputs& in, float* predictions,
                       ops::Parallel* parallel) override {
    Prepare(in, Passes::kForward, parallel);
    ForBlocks(in.batch->size, layers_.block_rows(), parallel, [&](size_t begin, size_t end) {
      Forward(in, begin, end);
      scratch_.Predict(begin, end - begin, predictions);
    });
    return absl::OkStatus();
  }

 private:
  void Prepare(const ModelInputs& in, Passes passes, ops::Parallel* parallel) {
    scratch_.Resize(*in.batch);
    input_.Prepare(in, passes);
    for (const auto& attention : attentions_) attention->Prepare(in, passes, parallel);
    layers_.Prepare(in, passes, parallel);
  }

  void Forward(const ModelInputs& in, size_t begin, size_t end) {
    input_.Gather(in, begin, end);
    for (const auto& attention : attentions_) attention->Forward(begin, end, &input_);
    for (size_t i = begin; i < end; ++i) {
      std::memcpy(layers_.input(i), input_.values(i), input_.width() * sizeof(float));
    }
    layers_.Forward(begin, end - begin);
    TakeLogits(layers_, begin, end, &scratch_);
  }

  void Backward(size_t begin, size_t end) {
    GiveGradients(scratch_, begin, end, &layers_);
    layers_.Backward(begin, end - begin);
    for (size_t i = begin; i < end; ++i) {
      std::memcpy(input_.gradients(i), layers_.input_gradient(i), input_.width() * sizeof(float));
    }
    for (const auto& attention : attentions_) attention->Backward(begin, end, &input_);
  }

  FieldInput input_;
  std::vector<std::unique_ptr<Attention>> attentions_;
  Perceptron layers_;
  ops::TransposedGemm gemm_;
  ExampleScratch scratch_;
  std::vector<ops::TransposedProduct> products_;
};

}  // namespace

std::unique_ptr<Model> MakeDin(const ModelTables& tables) { return std::make_unique<Din>(tables); }

}  // namespace strata
