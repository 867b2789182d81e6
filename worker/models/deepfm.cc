#include <cstring>
#include <memory>
#include <vector>

#include "ops/cpu_features.h"
#include "ops/nn/fm.h"
#include "ops/nn/fm_types.h"
#include "ops/nn/gemm.h"
#include "ops/nn/logistic.h"
#include "ops/nn/mlp.h"
#include "worker/models/model_kinds.h"
#include "worker/models/model_parts.h"

namespace strata {
namespace {

using Passes = ops::Mlp::Passes;

std::vector<size_t> Widths(const ModelTables& tables) {
  std::vector<size_t> widths = {static_cast<size_t>(tables.fields) * tables.embedding_dim +
                                tables.numeric};
  widths.insert(widths.end(), tables.hidden.begin(), tables.hidden.end());
  widths.push_back(1);
  return widths;
}

// Tensors: bias; numeric_weight; then weight and bias of each layer.
//
// A step goes through the batch in blocks of rows that stay in the cache: embeddings, all layers
// forward, loss, all layers backward. Then come the weights' gradients over the whole batch, and
// the rows'.
class DeepFm : public Model {
 public:
  explicit DeepFm(const ModelTables& tables)
      : fields_(tables.fields),
        numeric_(tables.numeric),
        dim_(tables.embedding_dim),
        first_layer_(numeric_ > 0 ? 2 : 1),
        mlp_(ops::GemmKernelOf(ops::ActiveIsaLevel()), Widths(tables)),
        gemm_(ops::GemmKernelOf(ops::ActiveIsaLevel())) {}

  double TrainStep(const ModelInputs& in, const ModelGradients& out, float* predictions,
                   ops::Parallel* parallel) override {
    const Batch& batch = *in.batch;
    const ops::SparseExamples x = ExamplesOf(in, dim_ + 1);
    Prepare(in, Passes::kForwardAndBackward, parallel);
    ForBlocks(batch.size, mlp_.block_rows(), parallel, [&](size_t begin, size_t end) {
      Forward(in, x, begin, end, scratch_.example.data());
      LogisticBlock(batch, begin, end - begin, &scratch_, predictions);
      for (size_t i = begin; i < end; ++i) *mlp_.output_gradient(i) = scratch_.gradients[i];
      mlp_.Backward(begin, end - begin);
    });
    DenseGradients(batch, out, parallel);
    ops::FmGradientInputs g;
    g.gradient = scratch_.gradients.data();
    g.sums = sums_.data();
    g.example = scratch_.example.data();
    g.embeddings = mlp_.input_gradient(0);
    g.embeddings_stride = mlp_.input_stride();
    g.fields = fields_;
    ForKeys(*in.routed, parallel,
            [&](const ops::KeyOccurrences& keys) { ops::FmGradients(x, dim_, g, keys, out.rows); });
    return SumLosses(scratch_, batch);
  }

  void Predict(const ModelInputs& in, float* predictions, ops::Parallel* parallel) override {
    const ops::SparseExamples x = ExamplesOf(in, dim_ + 1);
    Prepare(in, Passes::kForward, parallel);
    ForBlocks(in.batch->size, mlp_.block_rows(), parallel, [&](size_t begin, size_t end) {
      Forward(in, x, begin, end, nullptr);
      ops::Sigmoid(end - begin, scratch_.logits.data() + begin, predictions + begin);
    });
  }

 private:
  void Prepare(const ModelInputs& in, Passes passes, ops::Parallel* parallel) {
    scratch_.Resize(*in.batch);
    sums_.resize(static_cast<size_t>(in.batch->size) * dim_);
    mlp_.Resize(in.batch->size, passes);
    layers_.clear();
    for (size_t i = 0; i < mlp_.layers(); ++i) {
      layers_.push_back({in.tensors[first_layer_ + 2 * i], in.tensors[first_layer_ + 2 * i + 1]});
    }
    mlp_.SetWeights(layers_, passes, parallel);
  }

  void Forward(const ModelInputs& in, const ops::SparseExamples& x, size_t begin, size_t end,
               uint32_t* example) {
    ops::FmOutputs f;
    f.logits = scratch_.logits.data();
    f.sums = sums_.data();
    f.example = example;
    f.embeddings = mlp_.input(0);
    f.embeddings_stride = mlp_.input_stride();
    f.fields = fields_;
    ops::FmForward(x, dim_, in.tensors[0][0], numeric_ > 0 ? in.tensors[1] : nullptr, nullptr,
                   static_cast<uint32_t>(begin), static_cast<uint32_t>(end), f);
    const size_t width = static_cast<size_t>(fields_) * dim_;
    for (size_t i = begin; i < end && numeric_ > 0; ++i) {
      std::memcpy(mlp_.input(i) + width, in.batch->dense.data() + i * numeric_,
                  numeric_ * sizeof(float));
    }
    mlp_.Forward(begin, end - begin);
    for (size_t i = begin; i < end; ++i) scratch_.logits[i] += *mlp_.output(i);
  }

  void DenseGradients(const Batch& batch, const ModelGradients& out, ops::Parallel* parallel) {
    products_.clear();
    layer_gradients_.clear();
    for (size_t i = 0; i < mlp_.layers(); ++i) {
      layer_gradients_.push_back(
          {out.tensors[first_layer_ + 2 * i], out.tensors[first_layer_ + 2 * i + 1]});
    }
    mlp_.AppendWeightGradients(batch.size, layer_gradients_, &products_);
    ops::TransposedProduct p;  // numeric inputs times gradients; their sum is the bias's
    p.rows = batch.size;
    p.m = numeric_;
    p.n = 1;
    p.a = batch.dense.data();
    p.lda = numeric_;
    p.b = scratch_.gradients.data();
    p.ldb = 1;
    p.c = numeric_ > 0 ? out.tensors[1] : nullptr;
    p.ldc = 1;
    p.column_sums = out.tensors[0];
    products_.push_back(p);
    gemm_.Run(products_, parallel);
  }

  const uint32_t fields_, numeric_, dim_;
  const size_t first_layer_;  // tensor number of the first layer's weight
  ops::Mlp mlp_;
  ops::TransposedGemm gemm_;
  ExampleScratch scratch_;
  std::vector<float> sums_;  // (examples, dim)
  std::vector<ops::MlpLayer> layers_;
  std::vector<ops::MlpLayerGradient> layer_gradients_;
  std::vector<ops::TransposedProduct> products_;
};

}  // namespace

std::unique_ptr<Model> MakeDeepFm(const ModelTables& tables) {
  return std::make_unique<DeepFm>(tables);
}

}  // namespace strata
