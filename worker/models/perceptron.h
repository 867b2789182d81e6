// A perceptron whose layers are consecutive tensors of the job.
// Tested by tests/worker/models/models_test.cc
#ifndef STRATA_WORKER_MODELS_PERCEPTRON_H_
#define STRATA_WORKER_MODELS_PERCEPTRON_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/nn/gemm.h"
#include "ops/nn/mlp.h"
#include "ops/parallel.h"
#include "worker/step/model.h"

namespace strata {

// Adds to Mlp (which see for usage and threads) where its weights and their gradients lie: layer i
// is tensors first_tensor + 2 i (weight) and + 1 (bias).
class Perceptron : public ops::Mlp {
 public:
  // widths: inputs, hidden.., outputs.
  Perceptron(std::vector<size_t> widths, Output output, size_t first_tensor);

  // Before Forward and Backward of a batch: room for a row of each example, or for so many rows,
  // and the weights.
  void Prepare(const ModelInputs& in, Passes passes, ops::Parallel* parallel);
  void Prepare(const ModelInputs& in, size_t rows, Passes passes, ops::Parallel* parallel);
  // After them: the products that give the weights' gradients.
  void AppendGradients(const ModelGradients& out, std::vector<ops::TransposedProduct>* products);

 private:
  const size_t first_tensor_;
  size_t rows_ = 0;  // of the batch
  std::vector<ops::MlpLayer> weights_;
  std::vector<ops::MlpLayerGradient> gradients_;
};

// inputs, hidden.., outputs; an `outputs` of 0 leaves the last hidden layer last.
std::vector<size_t> LayerWidths(size_t inputs, const std::vector<uint32_t>& hidden, size_t outputs);

}  // namespace strata

#endif  // STRATA_WORKER_MODELS_PERCEPTRON_H_
