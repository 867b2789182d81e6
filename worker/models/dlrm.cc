#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "ops/cpu_features.h"
#include "ops/nn/embedding.h"
#include "ops/nn/embedding_types.h"
#include "ops/nn/gemm.h"
#include "ops/nn/layer_memory.h"
#include "ops/nn/pairwise.h"
#include "worker/models/model_kinds.h"
#include "worker/models/model_parts.h"
#include "worker/models/perceptron.h"

namespace strata {
namespace {

using ops::Passes;

std::vector<size_t> BottomWidths(const ModelTables& tables) {
  return LayerWidths(tables.numeric, tables.bottom_hidden, tables.embedding_dim);
}

std::vector<size_t> TopWidths(const ModelTables& tables) {
  const size_t bottom = tables.numeric > 0 ? tables.embedding_dim : 0;
  return LayerWidths(bottom + tables.interaction_pairs(), tables.hidden, tables.task_count());
}

// Tensors: by layer of the bottom (numeric > 0), of the top and of the output: weight, bias.
//
// An example's vectors stand in one row: the bottom's output (numeric > 0), then its embeddings. A
// step goes through the batch in blocks of rows that stay in the cache: bottom, embeddings, dots
// and top forward, loss, the same backward. Then come the weights' gradients over the whole batch,
// and the rows'.
class Dlrm : public Model {
 public:
  explicit Dlrm(const ModelTables& tables)
      : numeric_(tables.numeric),
        dim_(tables.embedding_dim),
        bottom_width_(numeric_ > 0 ? dim_ : 0),
        vectors_(tables.interaction_vectors()),
        stride_(ops::RowStride(static_cast<size_t>(vectors_) * dim_)),
        dots_(ops::GemmKernelOf(ops::ActiveIsaLevel()), vectors_, dim_),
        top_(TopWidths(tables), ops::Mlp::Output::kLinear,
             numeric_ > 0 ? 2 * (tables.bottom_hidden.size() + 1) : 0),
        gemm_(ops::GemmKernelOf(ops::ActiveIsaLevel())),
        scratch_(tables) {
    if (numeric_ > 0) bottom_.emplace(BottomWidths(tables), ops::Mlp::Output::kRelu, 0);
  }

  absl::StatusOr<double> TrainStep(const ModelInputs& in, const ModelGradients& out,
                                   float* predictions, ops::Parallel* parallel) override {
    const Batch& batch = *in.batch;
    const ops::SparseExamples x = ExamplesOf(in, dim_);
    Prepare(in, Passes::kForwardAndBackward, parallel);
    TrainBlocks(
        batch.size, top_.block_rows(), parallel, in.passes,
        [&](size_t begin, size_t end) {
          Forward(in, x, begin, end, scratch_.example.data());
          scratch_.Train(batch, begin, end - begin, predictions);
        },
        [&](size_t begin, size_t end) {
          GiveGradients(scratch_, begin, end, &top_);
          Backward(begin, end);
        });
    products_.clear();
    if (bottom_) bottom_->AppendGradients(out, &products_);
    top_.AppendGradients(out, &products_);
    gemm_.Run(products_, parallel);
    const ops::FieldMatrix gradient = FieldsOf(vector_gradients_.data());
    ForKeys(*in.routed, parallel, [&](const ops::KeyOccurrences& keys) {
      ops::EmbeddingGradients(x, dim_, gradient, scratch_.example.data(), keys, out.rows);
    });
    return scratch_.SumLosses();
  }

  absl::Status Predict(const ModelInputs& in, float* predictions,
                       ops::Parallel* parallel) override {
    const ops::SparseExamples x = ExamplesOf(in, dim_);
    Prepare(in, Passes::kForward, parallel);
    ForBlocks(in.batch->size, top_.block_rows(), parallel, [&](size_t begin, size_t end) {
      Forward(in, x, begin, end, nullptr);
      scratch_.Predict(begin, end - begin, predictions);
    });
    return absl::OkStatus();
  }

 private:
  // The fields' part of a matrix of vectors.
  ops::FieldMatrix FieldsOf(float* vectors) const {
    return {vectors + bottom_width_, stride_, vectors_ - (numeric_ > 0 ? 1 : 0)};
  }
  // Of the block that begins at row `begin`.
  float* DotsScratch(size_t begin) {
    return dots_scratch_.data() + begin / top_.block_rows() * ops::RowStride(dots_.scratch());
  }

  void Prepare(const ModelInputs& in, Passes passes, ops::Parallel* parallel) {
    const size_t batch = in.batch->size;
    scratch_.Resize(*in.batch);
    vector_values_.Reserve(batch * stride_);
    if (passes == Passes::kForwardAndBackward) vector_gradients_.Reserve(batch * stride_);
    const size_t blocks = (batch + top_.block_rows() - 1) / top_.block_rows();
    dots_scratch_.Reserve(blocks * ops::RowStride(dots_.scratch()));
    if (bottom_) bottom_->Prepare(in, passes, parallel);
    top_.Prepare(in, passes, parallel);
  }

  void Forward(const ModelInputs& in, const ops::SparseExamples& x, size_t begin, size_t end,
               uint32_t* example) {
    const size_t rows = end - begin;
    float* const vectors = vector_values_.data();
    ops::GatherEmbeddings(x, dim_, static_cast<uint32_t>(begin), static_cast<uint32_t>(end),
                          FieldsOf(vectors), example);
    if (bottom_) {
      CopyNumbers(*in.batch, begin, end, bottom_->input(0), bottom_->input_stride());
      bottom_->Forward(begin, rows);
      for (size_t i = begin; i < end; ++i) {
        std::memcpy(vectors + i * stride_, bottom_->output(i), dim_ * sizeof(float));
        std::memcpy(top_.input(i), bottom_->output(i), dim_ * sizeof(float));
      }
    }
    dots_.Forward(rows, vectors + begin * stride_, stride_, top_.input(begin) + bottom_width_,
                  top_.input_stride(), DotsScratch(begin));
    top_.Forward(begin, rows);
    TakeLogits(top_, begin, end, &scratch_);
  }

  void Backward(size_t begin, size_t end) {
    const size_t rows = end - begin;
    top_.Backward(begin, rows);
    dots_.Backward(rows, vector_values_.data() + begin * stride_, stride_,
                   top_.input_gradient(begin) + bottom_width_, top_.input_stride(),
                   vector_gradients_.data() + begin * stride_, DotsScratch(begin));
    if (!bottom_) return;
    for (size_t i = begin; i < end; ++i) {
      const float* const by_dots = vector_gradients_.data() + i * stride_;
      const float* const by_top = top_.input_gradient(i);
      float* const sum = bottom_->output_gradient(i);
      for (size_t d = 0; d < dim_; ++d) sum[d] = by_top[d] + by_dots[d];
    }
    bottom_->Backward(begin, rows);
  }

  const uint32_t numeric_, dim_, bottom_width_, vectors_;
  const size_t stride_;  // floats between rows of vectors
  ops::PairwiseDots dots_;
  std::optional<Perceptron> bottom_;
  Perceptron top_;
  ops::TransposedGemm gemm_;
  ExampleScratch scratch_;
  ops::AlignedFloats vector_values_, vector_gradients_;  // (examples, vectors * dim)
  ops::AlignedFloats dots_scratch_;                      // by block
  std::vector<ops::TransposedProduct> products_;
};

}  // namespace

std::unique_ptr<Model> MakeDlrm(const ModelTables& tables) {
  return std::make_unique<Dlrm>(tables);
}

}  // namespace strata
