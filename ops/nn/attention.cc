#include "ops/nn/attention.h"

#include <cstring>

#include "ops/exact_math.h"

namespace strata::ops {

using exact::Fma;

void AttentionInputs(AttentionShape shape, const float* v, const float* q, float* out,
                     size_t stride) {
  const size_t dim = shape.dim;
  for (uint32_t p = 0; p < shape.length; ++p, v += dim, out += stride) {
    std::memcpy(out, v, dim * sizeof(float));
    std::memcpy(out + dim, q, dim * sizeof(float));
    for (size_t d = 0; d < dim; ++d) out[2 * dim + d] = v[d] - q[d];
    for (size_t d = 0; d < dim; ++d) out[3 * dim + d] = v[d] * q[d];
  }
}

void AttentionSum(AttentionShape shape, const float* v, const float* a, size_t stride, float* out) {
  const size_t dim = shape.dim;
  if (shape.length == 0) std::memset(out, 0, dim * sizeof(float));
  for (uint32_t p = 0; p < shape.length; ++p, v += dim, a += stride) {
    if (p == 0) {
      for (size_t d = 0; d < dim; ++d) out[d] = v[d] * *a;
    } else {
      for (size_t d = 0; d < dim; ++d) out[d] = Fma(v[d], *a, out[d]);
    }
  }
}

void AttentionWeightGradients(AttentionShape shape, const float* v, const float* gradient,
                              float* a_gradient, size_t stride) {
  for (uint32_t p = 0; p < shape.length; ++p, v += shape.dim) {
    float sum = 0.0f;
    for (uint32_t d = 0; d < shape.dim; ++d) sum = Fma(v[d], gradient[d], sum);
    a_gradient[p * stride] = sum;
  }
}

void AttentionBackward(AttentionShape shape, const AttentionGradients& g, float* v_gradient,
                       float* q_gradient) {
  const size_t dim = shape.dim;
  for (uint32_t p = 0; p < shape.length; ++p, v_gradient += dim) {
    const float* const v = g.v + p * dim;
    const float* const by_v = g.inputs + p * g.inputs_stride;
    const float* const by_q = by_v + dim;
    const float* const by_difference = by_q + dim;
    const float* const by_product = by_difference + dim;
    const float a = g.a[p * g.a_stride];
    for (size_t d = 0; d < dim; ++d) {
      const float direct = Fma(g.sum_gradient[d], a, by_v[d]);
      v_gradient[d] = Fma(by_product[d], g.q[d], direct + by_difference[d]);
    }
    for (size_t d = 0; d < dim; ++d) {
      const float direct = by_q[d] - by_difference[d];
      q_gradient[d] += Fma(by_product[d], v[d], direct);
    }
  }
}

}  // namespace strata::ops
