// A multi-layer perceptron with ReLU between its layers and a linear or ReLU output, forward and
// backward over a batch. Every sum is one chain in a fixed order (gemm.h): results do not depend on
// the number of threads, the instruction set, or how the batch is cut into blocks.
#ifndef STRATA_OPS_NN_MLP_H_
#define STRATA_OPS_NN_MLP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ops/nn/gemm.h"
#include "ops/nn/gemm_kernel.h"
#include "ops/nn/layer_memory.h"
#include "ops/parallel.h"

namespace strata::ops {

// Weights or gradients of one layer; the memory belongs to the caller.
struct MlpLayer {
  const float* weight = nullptr;  // (inputs, outputs)
  const float* bias = nullptr;    // (outputs)
};
struct MlpLayerGradient {
  float* weight = nullptr;  // (inputs, outputs)
  float* bias = nullptr;    // (outputs)
};

// Usage of one step: SetWeights; Resize; then for blocks of rows that together cover the batch, in
// any order and on any threads: fill input(), Forward, read output(), write output_gradient(),
// Backward, read input_gradient(); then, once all blocks are done, WeightGradients.
// Owns its activations: 2 x batch x (inputs + hidden + outputs) floats, reused from step to step.
class Mlp {
 public:
  enum class Output : uint8_t { kLinear, kRelu };
  // widths: inputs, hidden layers.., outputs; at least two, all positive.
  Mlp(const GemmKernel& kernel, std::vector<size_t> widths, Output output);

  size_t layers() const { return widths_.size() - 1; }
  // Rows of a block that use whole register tiles; about what fits the second level cache.
  size_t block_rows() const;

  // Packs the weights (which are not needed afterwards); `for_backward`: those of Backward, too.
  using Passes = ops::Passes;
  void SetWeights(std::span<const MlpLayer> layers, Passes passes, Parallel* parallel);
  // Makes room for a batch. Contents are lost.
  void Resize(size_t batch, Passes passes);

  // Row r of a matrix stands at (r * its stride).
  float* input(size_t row) { return value_[0].data() + row * stride_[0]; }
  size_t input_stride() const { return stride_.front(); }
  const float* output(size_t row) const { return value_.back().data() + row * stride_.back(); }
  size_t output_stride() const { return stride_.back(); }
  float* output_gradient(size_t row) { return gradient_.back().data() + row * stride_.back(); }
  // Backward overwrites it; what is added afterwards is the caller's.
  float* input_gradient(size_t row) { return gradient_[0].data() + row * stride_[0]; }

  // Rows first .. first + rows - 1. Any thread; blocks must not overlap.
  // h = max(x W + b, 0) per hidden layer (chain over inputs, then + b, then ReLU); the last
  // without where the output is linear.
  void Forward(size_t first, size_t rows);
  // gradient of x = (gradient of h) W^T, zero where the layer below did not pass. A ReLU output's
  // gradient is zeroed likewise, in place.
  void Backward(size_t first, size_t rows);

  // Appends the products that give the weights' gradients over rows 0 .. batch - 1.
  void AppendWeightGradients(size_t batch, std::span<const MlpLayerGradient> out,
                             std::vector<TransposedProduct>* products) const;

 private:
  std::vector<size_t> widths_;
  const Output output_;
  std::vector<size_t> stride_;           // by level: floats between rows
  std::vector<AlignedFloats> value_;     // by level: (batch, width), level 0 is the input
  std::vector<AlignedFloats> gradient_;  // the same
  std::vector<PackedMatrix> forward_;    // by layer
  std::vector<PackedMatrix> backward_;   // by layer, transposed
  std::vector<AlignedFloats> bias_;      // by layer
};

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_MLP_H_
