// The second order of a factorization machine (fm.h) element by element, for models whose tasks
// weigh its elements each in its own way. Any thread; results do not depend on how examples and
// keys are split.
// Tested by tests/worker/models/gradients_test.cc
#ifndef STRATA_OPS_NN_FM_HEADS_H_
#define STRATA_OPS_NN_FM_HEADS_H_

#include <cstddef>
#include <cstdint>

#include "ops/coalesce_sum.h"
#include "ops/nn/fm_types.h"
#include "ops/nn/sparse_examples.h"

namespace strata::ops {

// terms (examples, dim): 1/2 ((sum v x)^2 - sum (v x)^2). Of `out` all but the logits is written,
// as FmForward does; numeric_embedding as there.
void FmTerms(const SparseExamples& x, uint32_t dim, const float* numeric_embedding, uint32_t begin,
             uint32_t end, const FmOutputs& out, float* terms);

// Gradient sums of embeddings for keys.begin .. keys.end - 1 in the order of EXACT.md rule 6: out
// (unique, stride) with x's stride. Of v: x (g (sum - v x) + embedding's), element by element,
// where g is `term_gradients` (examples, dim): derivatives of the loss by the terms. in.gradient is
// not read.
void FmTermGradients(const SparseExamples& x, uint32_t dim, const FmGradientInputs& in,
                     const float* term_gradients, const KeyOccurrences& keys, float* out);

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_FM_HEADS_H_
