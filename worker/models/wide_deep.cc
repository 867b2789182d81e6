#include <memory>

#include "ops/nn/embedding.h"
#include "ops/nn/embedding_types.h"
#include "worker/models/linear_and_deep.h"
#include "worker/models/model_kinds.h"

namespace strata {
namespace {

// The part over the rows: the linear term.
class WideDeep : public LinearAndDeep {
 public:
  explicit WideDeep(const ModelTables& tables) : LinearAndDeep(tables) {}

 private:
  void ForwardRows(const ModelInputs& in, const ops::SparseExamples& x, uint32_t begin,
                   uint32_t end, uint32_t* example) override {
    ops::GatherEmbeddings(x, dim_, begin, end, {mlp_.input(0), mlp_.input_stride(), fields_},
                          example);
    linear_.Forward(x, begin, end, &scratch_, nullptr);
  }

  void RowGradients(const ops::SparseExamples& x, const ops::KeyOccurrences& keys,
                    const ModelGradients& out) override {
    const ops::FieldMatrix gradient = {mlp_.input_gradient(0), mlp_.input_stride(), fields_};
    ops::EmbeddingGradients(x, dim_, gradient, scratch_.example.data(), keys, out.rows);
    linear_.RowGradients(x, keys, scratch_, out.rows);
  }
};

}  // namespace

std::unique_ptr<Model> MakeWideDeep(const ModelTables& tables) {
  return std::make_unique<WideDeep>(tables);
}

}  // namespace strata
