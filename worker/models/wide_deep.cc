#include <memory>
#include <vector>

#include "ops/coalesce.h"
#include "ops/cpu_features.h"
#include "ops/nn/embedding.h"
#include "ops/nn/embedding_types.h"
#include "ops/nn/fm.h"
#include "ops/nn/gemm.h"
#include "ops/nn/layer_memory.h"
#include "ops/nn/logistic.h"
#include "worker/models/model_kinds.h"
#include "worker/models/model_parts.h"
#include "worker/models/perceptron.h"

namespace strata {
namespace {

using ops::Passes;

// Tensors: bias; numeric_weight; then weight and bias of each layer. A step goes through the batch
// in blocks, as DeepFM's does.
class WideDeep : public Model {
 public:
  explicit WideDeep(const ModelTables& tables)
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
    const ops::FieldMatrix gradient = {mlp_.input_gradient(0), mlp_.input_stride(), fields_};
    ForKeys(*in.routed, parallel, [&](const ops::KeyOccurrences& keys) {
      ops::EmbeddingGradients(x, dim_, gradient, scratch_.example.data(), keys, out.rows);
      ops::CoalesceScaled(keys, scratch_.example.data(), scratch_.gradients.data(), x.values,
                          out.rows + dim_, x.stride);
    });
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
    mlp_.Prepare(in, passes, parallel);
  }

  void Forward(const ModelInputs& in, const ops::SparseExamples& x, size_t begin, size_t end,
               uint32_t* example) {
    const auto first = static_cast<uint32_t>(begin), last = static_cast<uint32_t>(end);
    ops::GatherEmbeddings(x, dim_, first, last, {mlp_.input(0), mlp_.input_stride(), fields_},
                          example);
    CopyNumbers(*in.batch, begin, end, mlp_.input(0) + static_cast<size_t>(fields_) * dim_,
                mlp_.input_stride());
    ops::LinearForward(x, dim_, in.tensors[0][0], numeric_ > 0 ? in.tensors[1] : nullptr, first,
                       last, scratch_.logits.data(), nullptr);
    mlp_.Forward(begin, end - begin);
    for (size_t i = begin; i < end; ++i) scratch_.logits[i] += *mlp_.output(i);
  }

  const uint32_t fields_, numeric_, dim_;
  Perceptron mlp_;
  ops::TransposedGemm gemm_;
  ExampleScratch scratch_;
  std::vector<ops::TransposedProduct> products_;
};

}  // namespace

std::unique_ptr<Model> MakeWideDeep(const ModelTables& tables) {
  return std::make_unique<WideDeep>(tables);
}

}  // namespace strata
