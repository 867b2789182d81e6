#include "ops/nn/fm.h"

#include <memory>
#include <vector>

#include "ops/cpu_features.h"
#include "ops/nn/fm_heads.h"
#include "ops/nn/fm_types.h"
#include "ops/nn/gemm.h"
#include "ops/nn/sparse_examples.h"
#include "worker/models/fm_heads.h"
#include "worker/models/model_kinds.h"
#include "worker/models/model_parts.h"

namespace strata {
namespace {

constexpr size_t kBlock = 64;  // examples of a task

// Tensors: bias; numeric_weight; numeric_embedding; interaction_weight.
class Fm : public Model {
 public:
  explicit Fm(const ModelTables& tables)
      : numeric_(tables.numeric),
        dim_(tables.embedding_dim),
        tasks_(tables.task_count()),
        interaction_tensor_(tables.tensor_count() - 1),
        linear_(tables, dim_),
        heads_(dim_, tasks_),
        scratch_(tables),
        gemm_(ops::GemmKernelOf(ops::ActiveIsaLevel())) {}

  absl::StatusOr<double> TrainStep(const ModelInputs& in, const ModelGradients& out,
                                   float* predictions, ops::Parallel* parallel) override {
    const Batch& batch = *in.batch;
    const ops::SparseExamples x = ExamplesOf(in, dim_ + tasks_);
    Prepare(in);
    ResizeExactly(static_cast<size_t>(batch.size) * dim_, &scaled_);
    ResizeExactly(static_cast<size_t>(batch.size) * numeric_, &squares_);
    TrainBlocks(
        batch.size, kBlock, parallel, in.passes,
        [&](size_t begin, size_t end) {
          Forward(in, x, begin, end, scratch_.example.data());
          scratch_.Train(batch, begin, end - begin, predictions);
        },
        [&](size_t begin, size_t end) {
          if (tasks_ > 1) heads_.Backward(begin, end, scratch_);
          if (numeric_ > 0) NumericTerms(batch, begin, end);
        });
    ops::FmGradientInputs g;
    g.gradient = scratch_.gradients(0);
    g.sums = sums_.data();
    g.example = scratch_.example.data();
    ForKeys(*in.routed, parallel, [&](const ops::KeyOccurrences& keys) {
      if (tasks_ == 1) return ops::FmGradients(x, dim_, g, keys, out.rows);
      ops::FmTermGradients(x, dim_, g, heads_.term_gradients(), keys, out.rows);
      linear_.RowGradients(x, keys, scratch_, out.rows);
    });
    TensorGradients(in, out, parallel);
    return scratch_.SumLosses();
  }

  absl::Status Predict(const ModelInputs& in, float* predictions,
                       ops::Parallel* parallel) override {
    const ops::SparseExamples x = ExamplesOf(in, dim_ + tasks_);
    Prepare(in);
    ForBlocks(in.batch->size, kBlock, parallel, [&](size_t begin, size_t end) {
      Forward(in, x, begin, end, nullptr);
      scratch_.Predict(begin, end - begin, predictions);
    });
    return absl::OkStatus();
  }

 private:
  void Prepare(const ModelInputs& in) {
    scratch_.Resize(*in.batch);
    linear_.Prepare(in);
    ResizeExactly(static_cast<size_t>(in.batch->size) * dim_, &sums_);
    if (tasks_ > 1) heads_.Prepare(in.batch->size, in.tensors[interaction_tensor_]);
  }

  void Forward(const ModelInputs& in, const ops::SparseExamples& x, size_t begin, size_t end,
               uint32_t* example) {
    ops::FmOutputs f;
    f.logits = scratch_.logits(0);
    f.sums = sums_.data();
    f.example = example;
    const float* const numeric_embedding = numeric_ > 0 ? in.tensors[2] : nullptr;
    if (tasks_ == 1) {
      ops::FmForward(x, dim_, linear_.bias(0), linear_.numeric_weight(0), numeric_embedding,
                     static_cast<uint32_t>(begin), static_cast<uint32_t>(end), f);
      return;
    }
    linear_.Forward(x, begin, end, &scratch_, nullptr);
    heads_.Forward(x, numeric_embedding, begin, end, f, &scratch_);
  }

  // gradient x sum of v x, and gradient x numeric^2 (several tasks: numeric^2 alone, as gradients
  // are by element): what the numeric gradients are products of.
  void NumericTerms(const Batch& batch, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const float* numeric = batch.dense.data() + i * numeric_;
      if (tasks_ > 1) {
        for (size_t d = 0; d < dim_; ++d) {
          const size_t at = i * dim_ + d;
          scaled_[at] = heads_.term_gradients()[at] * sums_[at];
        }
        for (size_t j = 0; j < numeric_; ++j) squares_[i * numeric_ + j] = numeric[j] * numeric[j];
        continue;
      }
      const float g = scratch_.gradients(0)[i];
      for (size_t d = 0; d < dim_; ++d) scaled_[i * dim_ + d] = g * sums_[i * dim_ + d];
      for (size_t j = 0; j < numeric_; ++j) {
        squares_[i * numeric_ + j] = (g * numeric[j]) * numeric[j];
      }
    }
  }

  void TensorGradients(const ModelInputs& in, const ModelGradients& out, ops::Parallel* parallel) {
    const ops::TransposedProduct linear = LinearGradients(*in.batch, scratch_, out);
    if (tasks_ == 1) {
      NumericGradients(in, linear, out, parallel);
      return;
    }
    std::vector<ops::TransposedProduct> products = {linear};
    products.push_back(
        heads_.WeightGradient(in.batch->size, scratch_, out.tensors[interaction_tensor_]));
    if (numeric_ > 0) AppendNumericProducts(linear, out, &products);
    gemm_.Run(products, parallel);
    for (size_t jd = 0; jd < size_t{numeric_} * dim_; ++jd) {
      out.tensors[2][jd] = out.tensors[2][jd] - in.tensors[2][jd] * square_sums_[jd];
    }
  }

  // Several tasks: sum_i x_ij (g_id sum_id), and to square_sums_ sum_i x_ij^2 g_id.
  void AppendNumericProducts(const ops::TransposedProduct& linear, const ModelGradients& out,
                             std::vector<ops::TransposedProduct>* products) {
    square_sums_.resize(size_t{numeric_} * dim_);
    ops::TransposedProduct p = linear;
    p.n = dim_;
    p.b = scaled_.data();
    p.ldb = dim_;
    p.c = out.tensors[2];
    p.ldc = dim_;
    p.column_sums = nullptr;
    products->push_back(p);
    p.a = squares_.data();
    p.b = heads_.term_gradients();
    p.c = square_sums_.data();
    products->push_back(p);
  }

  // d / d embedding_jd = sum_i x_ij (g_i sum_id) - embedding_jd sum_i g_i x_ij^2.
  void NumericGradients(const ModelInputs& in, const ops::TransposedProduct& weight,
                        const ModelGradients& out, ops::Parallel* parallel) {
    ops::TransposedProduct products[3] = {weight, weight, weight};
    if (numeric_ == 0) {
      gemm_.Run({products, 1}, parallel);
      return;
    }
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

  const uint32_t numeric_, dim_, tasks_;
  const size_t interaction_tensor_;
  LinearHeads linear_;
  FmHeads heads_;  // of several tasks
  ExampleScratch scratch_;
  ops::TransposedGemm gemm_;
  std::vector<float> sums_;         // (examples, dim)
  std::vector<float> scaled_;       // (examples, dim)
  std::vector<float> squares_;      // (examples, numeric)
  std::vector<float> square_sums_;  // (numeric); several tasks: (numeric, dim)
};

}  // namespace

std::unique_ptr<Model> MakeFm(const ModelTables& tables) { return std::make_unique<Fm>(tables); }

}  // namespace strata
