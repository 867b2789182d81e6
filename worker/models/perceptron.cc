#include "worker/models/perceptron.h"

#include <utility>

#include "ops/cpu_features.h"

namespace strata {

Perceptron::Perceptron(std::vector<size_t> widths, Output output, size_t first_tensor)
    : Mlp(ops::GemmKernelOf(ops::ActiveIsaLevel()), std::move(widths), output),
      first_tensor_(first_tensor) {}

void Perceptron::Prepare(const ModelInputs& in, Passes passes, ops::Parallel* parallel) {
  Prepare(in, in.batch->size, passes, parallel);
}

void Perceptron::Prepare(const ModelInputs& in, size_t rows, Passes passes,
                         ops::Parallel* parallel) {
  rows_ = rows;
  Resize(rows, passes);
  weights_.clear();
  for (size_t i = 0; i < layers(); ++i) {
    weights_.push_back({in.tensors[first_tensor_ + 2 * i], in.tensors[first_tensor_ + 2 * i + 1]});
  }
  SetWeights(weights_, passes, parallel);
}

void Perceptron::AppendGradients(const ModelGradients& out,
                                 std::vector<ops::TransposedProduct>* products) {
  gradients_.clear();
  for (size_t i = 0; i < layers(); ++i) {
    gradients_.push_back(
        {out.tensors[first_tensor_ + 2 * i], out.tensors[first_tensor_ + 2 * i + 1]});
  }
  AppendWeightGradients(rows_, gradients_, products);
}

std::vector<size_t> LayerWidths(size_t inputs, const std::vector<uint32_t>& hidden,
                                size_t outputs) {
  std::vector<size_t> widths = {inputs};
  widths.insert(widths.end(), hidden.begin(), hidden.end());
  if (outputs > 0) widths.push_back(outputs);
  return widths;
}

}  // namespace strata
