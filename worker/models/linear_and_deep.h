// What wide_deep and deepfm are both: a part over the rows, which also fills the perceptron's
// input, plus a perceptron over the fields' embeddings and the numbers.
// Tested by tests/worker/models/models_test.cc
#ifndef STRATA_WORKER_MODELS_LINEAR_AND_DEEP_H_
#define STRATA_WORKER_MODELS_LINEAR_AND_DEEP_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/nn/gemm.h"
#include "ops/nn/sparse_examples.h"
#include "ops/parallel.h"
#include "proto/job/tables/model_tables.h"
#include "worker/models/model_parts.h"
#include "worker/models/perceptron.h"
#include "worker/step/model.h"

namespace strata {

// Tensors: bias; numeric_weight; then weight and bias of each layer; then the part's own.
//
// A step goes through the batch in blocks of rows that stay in the cache: embeddings, all layers
// forward, loss, all layers backward. Then come the weights' gradients over the whole batch, and
// the rows'.
class LinearAndDeep : public Model {
 public:
  absl::StatusOr<double> TrainStep(const ModelInputs& in, const ModelGradients& out,
                                   float* predictions, ops::Parallel* parallel) override;
  absl::Status Predict(const ModelInputs& in, float* predictions, ops::Parallel* parallel) override;

 protected:
  explicit LinearAndDeep(const ModelTables& tables);

  // Before the batch's first block.
  virtual void PrepareRows(const ModelInputs& in) { static_cast<void>(in); }
  // Writes the part's logits of examples begin .. end - 1 and their embeddings into mlp_'s input;
  // `example`: see SparseExamples' gathers; null when nothing is learned.
  virtual void ForwardRows(const ModelInputs& in, const ops::SparseExamples& x, uint32_t begin,
                           uint32_t end, uint32_t* example) = 0;
  // Behind the losses of examples begin .. end - 1, before the rows' gradients.
  virtual void BackwardRows(size_t begin, size_t end) {
    static_cast<void>(begin);
    static_cast<void>(end);
  }
  // Further products that give gradients of tensors.
  virtual void AppendProducts(const Batch& batch, const ModelGradients& out,
                              std::vector<ops::TransposedProduct>* products) {
    static_cast<void>(batch);
    static_cast<void>(out);
    static_cast<void>(products);
  }
  // The rows' gradients, of both parts, for some of the batch's keys. From several threads: changes
  // nothing but out.rows.
  virtual void RowGradients(const ops::SparseExamples& x, const ops::KeyOccurrences& keys,
                            const ModelGradients& out) = 0;

  const uint32_t fields_, dim_, tasks_;
  Perceptron mlp_;
  ExampleScratch scratch_;
  LinearHeads linear_;

 private:
  void Prepare(const ModelInputs& in, ops::Passes passes, ops::Parallel* parallel);
  void Forward(const ModelInputs& in, const ops::SparseExamples& x, size_t begin, size_t end,
               uint32_t* example);

  ops::TransposedGemm gemm_;
  std::vector<ops::TransposedProduct> products_;
};

}  // namespace strata

#endif  // STRATA_WORKER_MODELS_LINEAR_AND_DEEP_H_
