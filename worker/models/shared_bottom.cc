#include <cstring>
#include <memory>
#include <vector>

#include "ops/cpu_features.h"
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

// Tensors: weight and bias of each shared layer; then, task by task, those of its tower's layers.
//
// A step goes through the batch in blocks of rows that stay in the cache: embeddings, shared
// layers, towers, losses, and the same backward. Then come the weights' gradients over the whole
// batch, and the rows'.
class SharedBottom : public Model {
 public:
  explicit SharedBottom(const ModelTables& tables)
      : fields_(tables.fields),
        dim_(tables.embedding_dim),
        shared_width_(tables.hidden.back()),
        bottom_(LayerWidths(tables.example_width(), tables.hidden, 0), ops::Mlp::Output::kRelu, 0),
        gemm_(ops::GemmKernelOf(ops::ActiveIsaLevel())),
        scratch_(tables) {
    size_t tensor = 2 * tables.hidden.size();
    for (size_t t = 0; t < tables.task_count(); ++t) {
      towers_.push_back(std::make_unique<Perceptron>(
          LayerWidths(shared_width_, tables.tower_hidden, 1), ops::Mlp::Output::kLinear, tensor));
      tensor += 2 * (tables.tower_hidden.size() + 1);
    }
  }

  absl::StatusOr<double> TrainStep(const ModelInputs& in, const ModelGradients& out,
                                   float* predictions, ops::Parallel* parallel) override {
    const Batch& batch = *in.batch;
    const ops::SparseExamples x = ExamplesOf(in, dim_);
    Prepare(in, Passes::kForwardAndBackward, parallel);
    TrainBlocks(
        batch.size, bottom_.block_rows(), parallel, in.passes,
        [&](size_t begin, size_t end) {
          Forward(in, x, begin, end, scratch_.example.data());
          scratch_.Train(batch, begin, end - begin, predictions);
        },
        [&](size_t begin, size_t end) { Backward(begin, end); });
    products_.clear();
    bottom_.AppendGradients(out, &products_);
    for (const auto& tower : towers_) tower->AppendGradients(out, &products_);
    gemm_.Run(products_, parallel);
    const ops::FieldMatrix gradient = {bottom_.input_gradient(0), bottom_.input_stride(), fields_};
    ForKeys(*in.routed, parallel, [&](const ops::KeyOccurrences& keys) {
      ops::EmbeddingGradients(x, dim_, gradient, scratch_.example.data(), keys, out.rows);
    });
    return scratch_.SumLosses();
  }

  absl::Status Predict(const ModelInputs& in, float* predictions,
                       ops::Parallel* parallel) override {
    const ops::SparseExamples x = ExamplesOf(in, dim_);
    Prepare(in, Passes::kForward, parallel);
    ForBlocks(in.batch->size, bottom_.block_rows(), parallel, [&](size_t begin, size_t end) {
      Forward(in, x, begin, end, nullptr);
      scratch_.Predict(begin, end - begin, predictions);
    });
    return absl::OkStatus();
  }

 private:
  void Prepare(const ModelInputs& in, Passes passes, ops::Parallel* parallel) {
    scratch_.Resize(*in.batch);
    bottom_.Prepare(in, passes, parallel);
    for (const auto& tower : towers_) tower->Prepare(in, passes, parallel);
  }

  void Forward(const ModelInputs& in, const ops::SparseExamples& x, size_t begin, size_t end,
               uint32_t* example) {
    ops::GatherEmbeddings(x, dim_, static_cast<uint32_t>(begin), static_cast<uint32_t>(end),
                          {bottom_.input(0), bottom_.input_stride(), fields_}, example);
    CopyNumbers(*in.batch, begin, end, bottom_.input(0) + static_cast<size_t>(fields_) * dim_,
                bottom_.input_stride());
    bottom_.Forward(begin, end - begin);
    for (size_t t = 0; t < towers_.size(); ++t) {
      Perceptron& tower = *towers_[t];
      for (size_t i = begin; i < end; ++i) {
        std::memcpy(tower.input(i), bottom_.output(i), shared_width_ * sizeof(float));
      }
      tower.Forward(begin, end - begin);
      for (size_t i = begin; i < end; ++i) scratch_.logits(t)[i] = *tower.output(i);
    }
  }

  void Backward(size_t begin, size_t end) {
    for (size_t t = 0; t < towers_.size(); ++t) {
      Perceptron& tower = *towers_[t];
      for (size_t i = begin; i < end; ++i) *tower.output_gradient(i) = scratch_.gradients(t)[i];
      tower.Backward(begin, end - begin);
      for (size_t i = begin; i < end; ++i) {
        const float* const from = tower.input_gradient(i);
        float* const sum = bottom_.output_gradient(i);
        for (size_t j = 0; j < shared_width_; ++j) sum[j] = t == 0 ? from[j] : sum[j] + from[j];
      }
    }
    bottom_.Backward(begin, end - begin);
  }

  const uint32_t fields_, dim_;
  const size_t shared_width_;
  Perceptron bottom_;
  std::vector<std::unique_ptr<Perceptron>> towers_;  // by task
  ops::TransposedGemm gemm_;
  ExampleScratch scratch_;
  std::vector<ops::TransposedProduct> products_;
};

}  // namespace

std::unique_ptr<Model> MakeSharedBottom(const ModelTables& tables) {
  return std::make_unique<SharedBottom>(tables);
}

}  // namespace strata
