// Attention of one vector over the values of a sequence (Zhou et al., Deep Interest Network, KDD
// 2018, section 4.3): the vectors that the attention's perceptron takes, the sum of the values by
// the weights that it gives, and the gradients by both. One example at a time; any thread.
#ifndef STRATA_OPS_NN_ATTENTION_H_
#define STRATA_OPS_NN_ATTENTION_H_

#include <cstddef>
#include <cstdint>

namespace strata::ops {

// A sequence of `length` vectors v_p of dim floats behind each other, and the vector q that judges
// them. The memory belongs to the caller.
struct AttentionShape {
  uint32_t length = 0;
  uint32_t dim = 0;
};

// Rows p of out, `stride` floats apart: v_p, q, v_p - q, v_p q (by element).
void AttentionInputs(AttentionShape shape, const float* v, const float* q, float* out,
                     size_t stride);

// out (dim) = sum_p a_p v_p, ascending, the first a product and each further one a fma; zeros of an
// empty sequence. a: one float every `stride`.
void AttentionSum(AttentionShape shape, const float* v, const float* a, size_t stride, float* out);

// Derivatives by the weights: a_gradient[p] = v_p . gradient, a chain over ascending elements.
void AttentionWeightGradients(AttentionShape shape, const float* v, const float* gradient,
                              float* a_gradient, size_t stride);

// What AttentionInputs and AttentionSum were given: v_gradient (length, dim) is written, q_gradient
// (dim) added to, positions ascending. inputs: derivatives by AttentionInputs' out.
struct AttentionGradients {
  const float* v = nullptr;
  const float* q = nullptr;
  const float* a = nullptr;
  size_t a_stride = 0;
  const float* sum_gradient = nullptr;  // (dim): by AttentionSum's out
  const float* inputs = nullptr;
  size_t inputs_stride = 0;
};
void AttentionBackward(AttentionShape shape, const AttentionGradients& g, float* v_gradient,
                       float* q_gradient);

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_ATTENTION_H_
