#include <memory>
#include <vector>

#include "ops/nn/fm.h"
#include "ops/nn/fm_heads.h"
#include "ops/nn/fm_types.h"
#include "worker/models/fm_heads.h"
#include "worker/models/linear_and_deep.h"
#include "worker/models/model_kinds.h"
#include "worker/models/model_parts.h"

namespace strata {
namespace {

// The part over the rows: a factorization machine over the fields.
class DeepFm : public LinearAndDeep {
 public:
  explicit DeepFm(const ModelTables& tables)
      : LinearAndDeep(tables),
        heads_(dim_, tasks_),
        interaction_tensor_(tables.tensor_count() - 1) {}

 private:
  void PrepareRows(const ModelInputs& in) override {
    ResizeExactly(size_t{in.batch->size} * dim_, &sums_);
    if (tasks_ > 1) heads_.Prepare(in.batch->size, in.tensors[interaction_tensor_]);
  }

  void ForwardRows(const ModelInputs& in, const ops::SparseExamples& x, uint32_t begin,
                   uint32_t end, uint32_t* example) override {
    ops::FmOutputs f;
    f.logits = scratch_.logits(0);
    f.sums = sums_.data();
    f.example = example;
    f.embeddings = mlp_.input(0);
    f.embeddings_stride = mlp_.input_stride();
    f.fields = fields_;
    if (tasks_ == 1) {
      ops::FmForward(x, dim_, linear_.bias(0), linear_.numeric_weight(0), nullptr, begin, end, f);
      return;
    }
    linear_.Forward(x, begin, end, &scratch_, nullptr);
    heads_.Forward(x, nullptr, begin, end, f, &scratch_);
  }

  void BackwardRows(size_t begin, size_t end) override {
    if (tasks_ > 1) heads_.Backward(begin, end, scratch_);
  }

  void AppendProducts(const Batch& batch, const ModelGradients& out,
                      std::vector<ops::TransposedProduct>* products) override {
    if (tasks_ == 1) return;
    float* const weight = out.tensors[interaction_tensor_];
    products->push_back(heads_.WeightGradient(batch.size, scratch_, weight));
  }

  void RowGradients(const ops::SparseExamples& x, const ops::KeyOccurrences& keys,
                    const ModelGradients& out) override {
    ops::FmGradientInputs g;
    g.gradient = scratch_.gradients(0);
    g.sums = sums_.data();
    g.example = scratch_.example.data();
    g.embeddings = mlp_.input_gradient(0);
    g.embeddings_stride = mlp_.input_stride();
    g.fields = fields_;
    if (tasks_ == 1) return ops::FmGradients(x, dim_, g, keys, out.rows);
    ops::FmTermGradients(x, dim_, g, heads_.term_gradients(), keys, out.rows);
    linear_.RowGradients(x, keys, scratch_, out.rows);
  }

  std::vector<float> sums_;  // (examples, dim)
  FmHeads heads_;            // of several tasks
  const size_t interaction_tensor_;
};

}  // namespace

std::unique_ptr<Model> MakeDeepFm(const ModelTables& tables) {
  return std::make_unique<DeepFm>(tables);
}

}  // namespace strata
