#include <memory>
#include <vector>

#include "ops/cpu_features.h"
#include "ops/exact_math.h"
#include "ops/nn/cross.h"
#include "ops/nn/embedding.h"
#include "ops/nn/embedding_types.h"
#include "ops/nn/gemm.h"
#include "ops/nn/layer_memory.h"
#include "worker/models/model_kinds.h"
#include "worker/models/model_parts.h"
#include "worker/models/perceptron.h"

namespace strata {
namespace {

using ops::Passes;

// Tensors: by cross layer: weight, or v and u (rank > 0), bias; by hidden layer: weight, bias;
// output weight, output bias.
//
// The parallel structure: cross network and perceptron read the same inputs, which lie in the
// perceptron's memory, and the output layer reads both, the cross network's part first. A step goes
// through the batch in blocks of rows that stay in the cache.
class DcnV2 : public Model {
 public:
  explicit DcnV2(const ModelTables& tables)
      : fields_(tables.fields),
        dim_(tables.embedding_dim),
        width_(tables.example_width()),
        rank_(tables.cross_rank),
        deep_width_(tables.hidden.back()),
        cross_(ops::GemmKernelOf(ops::ActiveIsaLevel()), width_, tables.cross_layers, rank_),
        mlp_(LayerWidths(width_, tables.hidden, 0), ops::Mlp::Output::kRelu,
             cross_.layers() * (rank_ > 0 ? 3 : 2)),
        output_tensor_(tables.tensor_count() - 2),
        cross_output_(ops::GemmKernelOf(ops::ActiveIsaLevel())),
        deep_output_(ops::GemmKernelOf(ops::ActiveIsaLevel())),
        gemm_(ops::GemmKernelOf(ops::ActiveIsaLevel())),
        scratch_(tables) {}

  absl::StatusOr<double> TrainStep(const ModelInputs& in, const ModelGradients& out,
                                   float* predictions, ops::Parallel* parallel) override {
    const Batch& batch = *in.batch;
    const ops::SparseExamples x = ExamplesOf(in, dim_);
    Prepare(in, Passes::kForwardAndBackward, parallel);
    TrainBlocks(
        batch.size, mlp_.block_rows(), parallel, in.passes,
        [&](size_t begin, size_t end) {
          Forward(in, x, begin, end, scratch_.example.data());
          scratch_.Train(batch, begin, end - begin, predictions);
        },
        [&](size_t begin, size_t end) { Backward(in, begin, end); });
    DenseGradients(in, out, parallel);
    const ops::FieldMatrix gradient = {mlp_.input_gradient(0), mlp_.input_stride(), fields_};
    ForKeys(*in.routed, parallel, [&](const ops::KeyOccurrences& keys) {
      ops::EmbeddingGradients(x, dim_, gradient, scratch_.example.data(), keys, out.rows);
    });
    return scratch_.SumLosses();
  }

  absl::Status Predict(const ModelInputs& in, float* predictions,
                       ops::Parallel* parallel) override {
    const ops::SparseExamples x = ExamplesOf(in, dim_);
    Prepare(in, Passes::kForward, parallel);
    ForBlocks(in.batch->size, mlp_.block_rows(), parallel, [&](size_t begin, size_t end) {
      Forward(in, x, begin, end, nullptr);
      scratch_.Predict(begin, end - begin, predictions);
    });
    return absl::OkStatus();
  }

 private:
  size_t tasks() const { return scratch_.tasks(); }
  ops::CrossInput Inputs() { return {mlp_.input(0), mlp_.input_stride()}; }

  void Prepare(const ModelInputs& in, Passes passes, ops::Parallel* parallel) {
    scratch_.Resize(*in.batch);
    if (tasks() > 1) ResizeExactly(in.batch->size * tasks(), &outputs_);
    mlp_.Prepare(in, passes, parallel);
    cross_.Resize(in.batch->size, passes);
    cross_weights_.clear();
    for (size_t l = 0, t = 0; l < cross_.layers(); ++l) {
      ops::CrossLayer& layer = cross_weights_.emplace_back();
      if (rank_ > 0) layer.v = in.tensors[t++];
      layer.weight = in.tensors[t++];
      layer.bias = in.tensors[t++];
    }
    cross_.SetWeights(cross_weights_, passes, parallel);
    const float* const output = in.tensors[output_tensor_];
    cross_output_.Pack(output, width_, tasks(), tasks(), parallel);
    deep_output_.Pack(output + width_ * tasks(), deep_width_, tasks(), tasks(), parallel);
  }

  void Forward(const ModelInputs& in, const ops::SparseExamples& x, size_t begin, size_t end,
               uint32_t* example) {
    const size_t rows = end - begin;
    ops::GatherEmbeddings(x, dim_, static_cast<uint32_t>(begin), static_cast<uint32_t>(end),
                          {mlp_.input(0), mlp_.input_stride(), fields_}, example);
    CopyNumbers(*in.batch, begin, end, mlp_.input(0) + static_cast<size_t>(fields_) * dim_,
                mlp_.input_stride());
    cross_.Forward(begin, rows, Inputs());
    mlp_.Forward(begin, rows);
    float* const logits = (tasks() > 1 ? outputs_.data() : scratch_.logits(0)) + begin * tasks();
    ops::GemmRows(rows, cross_.output(begin), cross_.stride(), cross_output_, ops::GemmStart::kZero,
                  logits, tasks(), {});
    ops::GemmEpilogue e;
    e.bias = in.tensors[output_tensor_ + 1];
    ops::GemmRows(rows, mlp_.output(begin), mlp_.output_stride(), deep_output_,
                  ops::GemmStart::kContinue, logits, tasks(), e);
    for (size_t t = 0; tasks() > 1 && t < tasks(); ++t) {
      for (size_t i = begin; i < end; ++i) scratch_.logits(t)[i] = outputs_[i * tasks() + t];
    }
  }

  // gradient (width) = sum over tasks of g_t weight_t, the tasks' weights of an input side by side.
  void OutputGradient(const float* g, const float* weight, size_t width, float* gradient) const {
    const size_t n = tasks();
    for (size_t j = 0; j < width; ++j) gradient[j] = g[0] * weight[j * n];
    for (size_t t = 1; t < n; ++t) {
      for (size_t j = 0; j < width; ++j) {
        gradient[j] = ops::exact::Fma(g[t], weight[j * n + t], gradient[j]);
      }
    }
  }

  void Backward(const ModelInputs& in, size_t begin, size_t end) {
    const float* const output = in.tensors[output_tensor_];
    for (size_t i = begin; i < end; ++i) {
      const float* const g = scratch_.gradients() + i * tasks();
      OutputGradient(g, output, width_, cross_.output_gradient(i));
      OutputGradient(g, output + width_ * tasks(), deep_width_, mlp_.output_gradient(i));
    }
    mlp_.Backward(begin, end - begin);
    cross_.Backward(begin, end - begin, Inputs(), mlp_.input_gradient(0));
  }

  void DenseGradients(const ModelInputs& in, const ModelGradients& out, ops::Parallel* parallel) {
    products_.clear();
    cross_gradients_.clear();
    for (size_t l = 0, t = 0; l < cross_.layers(); ++l) {
      ops::CrossLayerGradient& layer = cross_gradients_.emplace_back();
      if (rank_ > 0) layer.v = out.tensors[t++];
      layer.weight = out.tensors[t++];
      layer.bias = out.tensors[t++];
    }
    cross_.AppendWeightGradients(in.batch->size, Inputs(), cross_gradients_, &products_);
    mlp_.AppendGradients(out, &products_);
    ops::TransposedProduct p;
    p.rows = in.batch->size;
    p.m = width_;
    p.n = tasks();
    p.a = cross_.output(0);
    p.lda = cross_.stride();
    p.b = scratch_.gradients();
    p.ldb = tasks();
    p.c = out.tensors[output_tensor_];
    p.ldc = tasks();
    p.column_sums = out.tensors[output_tensor_ + 1];
    products_.push_back(p);
    p.m = deep_width_;
    p.a = mlp_.output(0);
    p.lda = mlp_.output_stride();
    p.c = out.tensors[output_tensor_] + width_ * tasks();
    p.column_sums = nullptr;
    products_.push_back(p);
    gemm_.Run(products_, parallel);
  }

  const uint32_t fields_, dim_;
  const size_t width_, rank_, deep_width_;
  ops::CrossNetwork cross_;
  Perceptron mlp_;
  const size_t output_tensor_;  // number of the output's weight
  ops::PackedMatrix cross_output_, deep_output_;
  ops::TransposedGemm gemm_;
  ExampleScratch scratch_;
  std::vector<float> outputs_;  // (examples, tasks), where tasks are several
  std::vector<ops::CrossLayer> cross_weights_;
  std::vector<ops::CrossLayerGradient> cross_gradients_;
  std::vector<ops::TransposedProduct> products_;
};

}  // namespace

std::unique_ptr<Model> MakeDcnV2(const ModelTables& tables) {
  return std::make_unique<DcnV2>(tables);
}

}  // namespace strata
