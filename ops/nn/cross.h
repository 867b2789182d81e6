// The cross network of DCN-V2 (Wang et al., WWW 2021, arXiv 2008.13535, equations 1 and 2), forward
// and backward over a batch:
//   x_{l+1} = x_0 * (x_l W_l + b_l) + x_l, element by element, with W_l full, or V_l U_l of a rank.
// Matrix products are gemm.h's: results do not depend on the number of threads, the instruction
// set, or how the batch is cut into blocks.
#ifndef STRATA_OPS_NN_CROSS_H_
#define STRATA_OPS_NN_CROSS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "ops/nn/gemm.h"
#include "ops/nn/gemm_kernel.h"
#include "ops/nn/layer_memory.h"
#include "ops/parallel.h"

namespace strata::ops {

// Weights or gradients of one layer; the memory belongs to the caller. inputs: rank, or width for
// rank 0.
struct CrossLayer {
  const float* v = nullptr;       // (width, rank); rank > 0 only
  const float* weight = nullptr;  // (inputs, width)
  const float* bias = nullptr;    // (width)
};
struct CrossLayerGradient {
  float* v = nullptr;
  float* weight = nullptr;
  float* bias = nullptr;
};

// A matrix of x_0 or of its gradient; row r stands at data + r * stride.
struct CrossInput {
  const float* data = nullptr;
  size_t stride = 0;  // floats
};

// Usage of one step: SetWeights; Resize; then for blocks of rows that together cover the batch, in
// any order and on any threads: Forward, read output(), write output_gradient(), Backward; then,
// once all blocks are done, AppendWeightGradients. x_0 belongs to the caller and stays unchanged
// meanwhile. Owns batch x layers x (3 width + 2 rank) + batch x width floats, reused from step to
// step.
class CrossNetwork {
 public:
  // width, layers >= 1. rank 0: full matrices.
  CrossNetwork(const GemmKernel& kernel, size_t width, size_t layers, size_t rank);

  size_t layers() const { return layers_.size(); }

  // Packs the weights, which are not needed afterwards.
  void SetWeights(std::span<const CrossLayer> layers, Passes passes, Parallel* parallel);
  // Makes room for a batch. Contents are lost.
  void Resize(size_t batch, Passes passes);

  size_t stride() const { return stride_; }
  const float* output(size_t row) const { return layers_.back().next.data() + row * stride_; }
  // Backward overwrites it.
  float* output_gradient(size_t row) { return gradient_.data() + row * stride_; }

  // Rows first .. first + rows - 1. Any thread; blocks must not overlap.
  void Forward(size_t first, size_t rows, const CrossInput& x0);
  // Adds the gradient by x_0 to input_gradient (batch, width), rows x0.stride apart: first, from
  // the last layer down, what each layer's factor x_0 gets, then what x_0 gets as the first layer's
  // input.
  void Backward(size_t first, size_t rows, const CrossInput& x0, float* input_gradient);

  // Appends the products that give the weights' gradients over rows 0 .. batch - 1.
  void AppendWeightGradients(size_t batch, const CrossInput& x0,
                             std::span<const CrossLayerGradient> out,
                             std::vector<TransposedProduct>* products) const;

 private:
  // Rows of x_l and of t_l stand stride_ floats apart, of p_l and q_l rank_stride_.
  struct Layer {
    explicit Layer(const GemmKernel& kernel)
        : v(kernel), v_back(kernel), weight(kernel), weight_back(kernel) {}
    PackedMatrix v, v_back, weight, weight_back;  // the latter transposed
    AlignedFloats bias;
    AlignedFloats projected;           // p_l = x_l V
    AlignedFloats factor;              // u_l = x_l W + b, or p_l U + b
    AlignedFloats next;                // x_{l+1}
    AlignedFloats factor_gradient;     // t_l: by u_l
    AlignedFloats projected_gradient;  // q_l: by p_l
  };
  CrossInput InputOf(size_t layer, const CrossInput& x0) const;

  const size_t width_, rank_, stride_, rank_stride_;
  std::vector<Layer> layers_;
  AlignedFloats gradient_;  // by x_{l+1}, then by x_l
};

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_CROSS_H_
