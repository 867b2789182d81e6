#include <memory>
#include <vector>

#include "ops/cpu_features.h"
#include "ops/nn/fm.h"
#include "ops/nn/fm_types.h"
#include "ops/nn/gemm.h"
#include "ops/nn/layer_memory.h"
#include "ops/nn/logistic.h"
#include "worker/models/model_kinds.h"
#include "worker/models/model_parts.h"
#include "worker/models/perceptron.h"

namespace strata {
namespace {

using ops::Passes;

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
        mlp_(LayerWidths(tables.example_width(), tables.hidden, 1), ops::Mlp::Output::kLinear,
             numeric_ > 0 ? 2 : 1),
        gemm_(ops::GemmKernelOf(ops::ActiveIsaLevel())) {}

  double TrainStep(const ModelInputs& in, const ModelGradients& out, float* predictions,
                   ops::Parallel* parallel) override {
    const Batch& batch = *in.batch;
    const ops::SparseExamples x = ExamplesOf(in, dim_ + 1);
    Prepare(in, Passes::kForwardAndBackward, parallel);
    TrainBlocks(
        batch.size, mlp_.block_rows(), parallel, in.passes,
        [&](size_t begin, size_t end) {
          Forward(in, x, begin, end, scratch_.example.data());
          LogisticBlock(batch, begin, end - begin, &scratch_, predictions);
        },
        [&](size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) *mlp_.output_gradient(i) = scratch_.gradients[i];
          mlp_.Backward(begin, end - begin);
        });
    products_.assign(1, LinearGradients(batch, scratch_, out));
    mlp_.AppendGradients(in, out, &products_);
    gemm_.Run(products_, parallel);
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
    mlp_.Prepare(in, passes, parallel);
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
    CopyNumbers(*in.batch, begin, end, mlp_.input(0) + static_cast<size_t>(fields_) * dim_,
                mlp_.input_stride());
    mlp_.Forward(begin, end - begin);
    for (size_t i = begin; i < end; ++i) scratch_.logits[i] += *mlp_.output(i);
  }

  const uint32_t fields_, numeric_, dim_;
  Perceptron mlp_;
  ops::TransposedGemm gemm_;
  ExampleScratch scratch_;
  std::vector<float> sums_;  // (examples, dim)
  std::vector<ops::TransposedProduct> products_;
};

}  // namespace

std::unique_ptr<Model> MakeDeepFm(const ModelTables& tables) {
  return std::make_unique<DeepFm>(tables);
}

}  // namespace strata
