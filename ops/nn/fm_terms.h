// One element of a factorization machine's terms (fm.h), for every build of its kernels.
// Tested by tests/ops/nn/fm_test.cc, tests/ops/cuda/nn/fm_test.cc
#ifndef STRATA_OPS_NN_FM_TERMS_H_
#define STRATA_OPS_NN_FM_TERMS_H_

#include <cstddef>
#include <cstdint>

#include "ops/exact_math.h"
#include "ops/inline.h"
#include "ops/nn/sparse_examples.h"

namespace strata::ops {

STRATA_HD float ValueOf(const SparseExamples& x, uint32_t feature) {
  return x.values != nullptr ? x.values[feature] : 1.0f;
}

STRATA_HD uint32_t FieldOf(const SparseExamples& x, uint32_t feature, uint32_t example) {
  return x.fields != nullptr ? x.fields[feature] : feature - x.offsets[example];
}

// Adds v x to a sum and its square to another; returns it.
STRATA_HD float AddFmTerm(float v, float value, float* sum, float* square) {
  const float term = v * value;
  *sum = *sum + term;
  *square = exact::Fma(term, term, *square);
  return term;
}

// (sum v x)^2 - sum (v x)^2.
STRATA_HD float FmSecondOrder(float sum, float square) { return exact::Fma(sum, sum, -square); }

// The logit of an example's second order (FmSecondOrder summed over the elements) and first order.
STRATA_HD float FmLogit(float second_order, float linear) {
  return exact::Fma(0.5f, second_order, linear);
}

// bias + sum w x + sum numeric_weight x, the weight at `column` of a row, those of numbers
// numeric_stride apart. A feature's product is rounded before it is added: so it has the bits of a
// field into which it alone was pooled, whether or not the batch names fields. Only some batches
// name them, or pool: a line must not score by the others that come with it.
STRATA_HD float FmLinear(const SparseExamples& x, uint32_t i, uint32_t column, float bias,
                         const float* numeric_weight, uint32_t numeric_stride) {
  float logit = bias;
  const float* weight = x.rows + column;
  for (uint32_t f = x.offsets[i]; f < x.offsets[i + 1]; ++f) {
    const float w = weight[x.row[f] * x.stride];
    logit = logit + w * ValueOf(x, f);
  }
  const float* numeric = x.numeric + static_cast<size_t>(i) * x.numeric_count;
  for (uint32_t j = 0; j < x.numeric_count; ++j) {
    logit = exact::Fma(numeric_weight[size_t{j} * numeric_stride], numeric[j], logit);
  }
  return logit;
}

// The gradient of v: x (g (sum - v x)), and with the derivative by the term itself: of embeddings
// that go on into other layers.
STRATA_HD float FmGradientOf(float v, float value, float sum, float gradient) {
  return value * (gradient * (sum - v * value));
}
STRATA_HD float FmGradientOf(float v, float value, float sum, float gradient, float embedding) {
  return value * exact::Fma(gradient, sum - v * value, embedding);
}

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_FM_TERMS_H_
