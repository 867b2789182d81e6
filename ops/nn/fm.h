// Factorization machine (Rendle, ICDM 2010, equation 1 in the linear-time form of Lemma 3.1): first
// and second order terms of examples, and their gradients. Vectors of rows are embedding(dim),
// weight(1); dim <= 4096. Sums run in the order of an example's features, then of its numeric
// inputs. Any thread; results do not depend on how examples and keys are split.
#ifndef STRATA_OPS_NN_FM_H_
#define STRATA_OPS_NN_FM_H_

#include <cstdint>

#include "ops/coalesce_sum.h"
#include "ops/nn/fm_types.h"
#include "ops/nn/sparse_examples.h"

namespace strata::ops {

// First order terms only: logit = bias + sum w x + sum numeric_weight x, one chain; w stands at
// `column` of a row. A feature's link is a product and a sum, each rounded, so that a feature gives
// the same bits as a field into which it alone was pooled; a number's link is a fma. example
// (features) as in FmOutputs.
void LinearForward(const SparseExamples& x, uint32_t column, float bias,
                   const float* numeric_weight, uint32_t begin, uint32_t end, float* logits,
                   uint32_t* example);

// logit = (LinearForward's) + 1/2 sum_d ((sum v x)^2 - sum (v x)^2).
// numeric_embedding: (numeric_count, dim), or null when numbers take no part in the second order.
void FmForward(const SparseExamples& x, uint32_t dim, float bias, const float* numeric_weight,
               const float* numeric_embedding, uint32_t begin, uint32_t end, const FmOutputs& out);

// Gradient sums of keys.begin .. keys.end - 1 in the order of EXACT.md rule 6: out (unique, stride)
// with x's stride. Per feature: of v: x (g (sum - v x) + embedding's), of w: g x.
void FmGradients(const SparseExamples& x, uint32_t dim, const FmGradientInputs& in,
                 const KeyOccurrences& keys, float* out);

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_FM_H_
