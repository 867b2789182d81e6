#include "ops/nn/fm.h"

#include <memory>
#include <vector>

#include "ops/cpu_features.h"
#include "ops/nn/fm_types.h"
#include "ops/nn/gemm.h"
#include "ops/nn/logistic.h"
#include "worker/models/model_kinds.h"
#include "worker/models/model_parts.h"

namespace strata {
namespace {

constexpr size_t kBlock = 64;  // examples of a task

// Tensors: bias; numeric_weight; numeric_embedding.
class Fm : public Model {
 public:
  explicit Fm(const ModelTables& tables)
      : numeric_(tables.numeric),
        dim_(tables.embedding_dim),
        gemm_(ops::GemmKernelOf(ops::ActiveIsaLevel())) {}

  absl::StatusOr<double> TrainStep(const ModelInputs& in, const ModelGradients& out,
                                   float* predictions, ops::Parallel* parallel) override {
    const Batch& batch = *in.batch;
    const ops::SparseExamples x = ExamplesOf(in, dim_ + 1);
    Resize(batch);
    scaled_.resize(static_cast<size_t>(batch.size) * dim_);
    squares_.resize(static_cast<size_t>(batch.size) * numeric_);
    TrainBlocks(
        batch.size, kBlock, parallel, in.passes,
        [&](size_t begin, size_t end) {
          Forward(in, x, begin, end, scratch_.example.data());
          LogisticBlock(batch, begin, end - begin, &scratch_, predictions);
        },
        [&](size_t begin, size_t end) {
          if (numeric_ > 0) NumericTerms(batch, begin, end);
        });
    ops::FmGradientInputs g;
    g.gradient = scratch_.gradients.data();
    g.sums = sums_.data();
    g.example = scratch_.example.data();
    ForKeys(*in.routed, parallel,
            [&](const ops::KeyOccurrences& keys) { ops::FmGradients(x, dim_, g, keys, out.rows); });
    NumericGradients(in, out, parallel);
    return SumLosses(scratch_, batch);
  }

  absl::Status Predict(const ModelInputs& in, float* predictions,
                       ops::Parallel* parallel) override {
    const ops::SparseExamples x = ExamplesOf(in, dim_ + 1);
    Resize(*in.batch);
    ForBlocks(in.batch->size, kBlock, parallel, [&](size_t begin, size_t end) {
      Forward(in, x, begin, end, nullptr);
      ops::Sigmoid(end - begin, scratch_.logits.data() + begin, predictions + begin);
    });
    return absl::OkStatus();
  }

 private:
  void Resize(const Batch& batch) {
    scratch_.Resize(batch);
    sums_.resize(static_cast<size_t>(batch.size) * dim_);
  }

  void Forward(const ModelInputs& in, const ops::SparseExamples& x, size_t begin, size_t end,
               uint32_t* example) {
    ops::FmOutputs f;
    f.logits = scratch_.logits.data();
    f.sums = sums_.data();
    f.example = example;
    ops::FmForward(x, dim_, in.tensors[0][0], numeric_ > 0 ? in.tensors[1] : nullptr,
                   numeric_ > 0 ? in.tensors[2] : nullptr, static_cast<uint32_t>(begin),
                   static_cast<uint32_t>(end), f);
  }

  // gradient x sum of v x, and gradient x numeric^2: what the numeric gradients are products of.
  void NumericTerms(const Batch& batch, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const float g = scratch_.gradients[i];
      for (size_t d = 0; d < dim_; ++d) scaled_[i * dim_ + d] = g * sums_[i * dim_ + d];
      const float* numeric = batch.dense.data() + i * numeric_;
      for (size_t j = 0; j < numeric_; ++j) {
        squares_[i * numeric_ + j] = (g * numeric[j]) * numeric[j];
      }
    }
  }

  // d / d embedding_jd = sum_i x_ij (g_i sum_id) - embedding_jd sum_i g_i x_ij^2.
  void NumericGradients(const ModelInputs& in, const ModelGradients& out, ops::Parallel* parallel) {
    const Batch& batch = *in.batch;
    ops::TransposedProduct products[3];
    ops::TransposedProduct& weight = products[0];
    weight = LinearGradients(batch, scratch_, out);
    if (numeric_ == 0) {
      gemm_.Run({products, 1}, parallel);
      return;
    }
    products[1] = weight;
    products[1].n = dim_;
    products[1].b = scaled_.data();
    products[1].ldb = dim_;
    products[1].c = out.tensors[2];
    products[1].ldc = dim_;
    products[1].column_sums = nullptr;
    products[2] = products[1];  // no rows of C: only the column sums
    products[2].m = 0;
    products[2].n = numeric_;
    products[2].b = squares_.data();
    products[2].ldb = numeric_;
    square_sums_.resize(numeric_);
    products[2].column_sums = square_sums_.data();
    gemm_.Run(products, parallel);
    for (size_t j = 0; j < numeric_; ++j) {
      for (size_t d = 0; d < dim_; ++d) {
        float& gradient = out.tensors[2][j * dim_ + d];
        gradient = gradient - in.tensors[2][j * dim_ + d] * square_sums_[j];
      }
    }
  }

  const uint32_t numeric_, dim_;
  ops::TransposedGemm gemm_;
  ExampleScratch scratch_;
  std::vector<float> sums_;         // (examples, dim)
  std::vector<float> scaled_;       // (examples, dim)
  std::vector<float> squares_;      // (examples, numeric)
  std::vector<float> square_sums_;  // (numeric)
};

}  // namespace

std::unique_ptr<Model> MakeFm(const ModelTables& tables) { return std::make_unique<Fm>(tables); }

}  // namespace strata
