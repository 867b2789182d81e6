// Dot products of every pair of an example's vectors, and their gradients (the interaction of
// Naumov et al., arXiv 1906.00091, section 2.1). Each product, and each element of a gradient, is
// one chain of fma (gemm_kernel.h): bits depend on the shapes alone.
#ifndef STRATA_OPS_NN_PAIRWISE_H_
#define STRATA_OPS_NN_PAIRWISE_H_

#include <cstddef>

#include "ops/nn/gemm_kernel.h"

namespace strata::ops {

// The shape of an interaction, and what works on it. Immutable: any thread.
class PairwiseDots {
 public:
  // vectors, dim >= 1.
  PairwiseDots(const GemmKernel& kernel, size_t vectors, size_t dim);

  size_t vectors() const { return vectors_; }
  size_t pairs() const { return vectors_ * (vectors_ - 1) / 2; }
  // Floats of scratch memory, on a cache line, that each call of the two below needs to itself.
  size_t scratch() const;

  // Of `rows` examples: t (rows, vectors * dim), vectors one after another, and rows t_stride
  // floats apart; dots (rows, pairs()), rows dots_stride apart: t_i . t_j, chain over ascending
  // elements, at i (i - 1) / 2 + j for j < i.
  void Forward(size_t rows, const float* t, size_t t_stride, float* dots, size_t dots_stride,
               float* scratch) const;
  // gradient (rows, vectors * dim), rows t_stride apart, what it held is not read: of t_i: the sum
  // over j ascending, i itself with factor 0, of dots_gradient_ij t_j.
  void Backward(size_t rows, const float* t, size_t t_stride, const float* dots_gradient,
                size_t dots_stride, float* gradient, float* scratch) const;

 private:
  const GemmKernel* const kernel_;
  const size_t vectors_, dim_;
  const size_t square_stride_;  // floats between rows of a (vectors, vectors) square
};

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_PAIRWISE_H_
