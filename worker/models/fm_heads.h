// The second order of fm and deepfm for several tasks: each weighs its elements in its own way.
//   logit_t += sum_d (1 + w_dt) 1/2 ((sum v x)_d^2 - sum (v x)_d^2)
// Tested by tests/worker/models/models_test.cc
#ifndef STRATA_WORKER_MODELS_FM_HEADS_H_
#define STRATA_WORKER_MODELS_FM_HEADS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/coalesce_sum.h"
#include "ops/nn/fm_types.h"
#include "ops/nn/gemm.h"
#include "ops/nn/sparse_examples.h"
#include "worker/models/model_parts.h"

namespace strata {

// Usage of a batch: Prepare; Forward, and after the losses Backward, of blocks of examples on any
// threads; then the gradients. One batch at a time.
class FmHeads {
 public:
  FmHeads(uint32_t dim, uint32_t tasks) : dim_(dim), tasks_(tasks) {}

  // interaction_weight: (dim, tasks), less one.
  void Prepare(size_t examples, const float* interaction_weight);
  // Adds to the logits, which the linear terms have. `out`, but for its logits: ops::FmTerms.
  void Forward(const ops::SparseExamples& x, const float* numeric_embedding, size_t begin,
               size_t end, const ops::FmOutputs& out, ExampleScratch* scratch);
  // Fills the derivatives by the terms.
  void Backward(size_t begin, size_t end, const ExampleScratch& scratch);

  const float* term_gradients() const { return term_gradients_.data(); }  // (examples, dim)
  // The product that gives the gradient of interaction_weight.
  ops::TransposedProduct WeightGradient(size_t examples, const ExampleScratch& scratch,
                                        float* out) const;

 private:
  const uint32_t dim_, tasks_;
  std::vector<float> weights_;                 // (tasks, dim), with the one
  std::vector<float> terms_, term_gradients_;  // (examples, dim)
};

}  // namespace strata

#endif  // STRATA_WORKER_MODELS_FM_HEADS_H_
