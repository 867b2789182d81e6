#include <memory>
#include <vector>

#include "ops/nn/fm.h"
#include "ops/nn/fm_types.h"
#include "worker/models/linear_and_deep.h"
#include "worker/models/model_kinds.h"

namespace strata {
namespace {

// The part over the rows: a factorization machine over the fields.
class DeepFm : public LinearAndDeep {
 public:
  explicit DeepFm(const ModelTables& tables) : LinearAndDeep(tables) {}

 private:
  void PrepareRows(size_t examples) override { sums_.resize(examples * dim_); }

  void ForwardRows(const ModelInputs& in, const ops::SparseExamples& x, uint32_t begin,
                   uint32_t end, uint32_t* example) override {
    ops::FmOutputs f;
    f.logits = scratch_.logits.data();
    f.sums = sums_.data();
    f.example = example;
    f.embeddings = mlp_.input(0);
    f.embeddings_stride = mlp_.input_stride();
    f.fields = fields_;
    ops::FmForward(x, dim_, in.tensors[0][0], numeric_ > 0 ? in.tensors[1] : nullptr, nullptr,
                   begin, end, f);
  }

  void RowGradients(const ops::SparseExamples& x, const ops::KeyOccurrences& keys,
                    const ModelGradients& out) override {
    ops::FmGradientInputs g;
    g.gradient = scratch_.gradients.data();
    g.sums = sums_.data();
    g.example = scratch_.example.data();
    g.embeddings = mlp_.input_gradient(0);
    g.embeddings_stride = mlp_.input_stride();
    g.fields = fields_;
    ops::FmGradients(x, dim_, g, keys, out.rows);
  }

  std::vector<float> sums_;  // (examples, dim)
};

}  // namespace

std::unique_ptr<Model> MakeDeepFm(const ModelTables& tables) {
  return std::make_unique<DeepFm>(tables);
}

}  // namespace strata
