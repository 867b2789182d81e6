#include "worker/models/fm_heads.h"

#include "ops/exact_math.h"
#include "ops/nn/fm_heads.h"

namespace strata {

void FmHeads::Prepare(size_t examples, const float* interaction_weight) {
  ResizeExactly(examples * dim_, &terms_);
  ResizeExactly(examples * dim_, &term_gradients_);
  weights_.resize(size_t{tasks_} * dim_);
  for (size_t t = 0; t < tasks_; ++t) {
    for (size_t d = 0; d < dim_; ++d) {
      weights_[t * dim_ + d] = 1.0f + interaction_weight[d * tasks_ + t];
    }
  }
}

void FmHeads::Forward(const ops::SparseExamples& x, const float* numeric_embedding, size_t begin,
                      size_t end, const ops::FmOutputs& out, ExampleScratch* scratch) {
  ops::FmTerms(x, dim_, numeric_embedding, static_cast<uint32_t>(begin), static_cast<uint32_t>(end),
               out, terms_.data());
  for (size_t t = 0; t < tasks_; ++t) {
    const float* const weights = weights_.data() + t * dim_;
    float* const logits = scratch->logits(t);
    for (size_t i = begin; i < end; ++i) {
      const float* const terms = terms_.data() + i * dim_;
      float sum = logits[i];
      for (size_t d = 0; d < dim_; ++d) sum = ops::exact::Fma(weights[d], terms[d], sum);
      logits[i] = sum;
    }
  }
}

void FmHeads::Backward(size_t begin, size_t end, const ExampleScratch& scratch) {
  for (size_t i = begin; i < end; ++i) {
    float* const gradients = term_gradients_.data() + i * dim_;
    for (size_t d = 0; d < dim_; ++d) gradients[d] = 0.0f;
    for (size_t t = 0; t < tasks_; ++t) {
      const float* const weights = weights_.data() + t * dim_;
      const float g = scratch.gradients(t)[i];
      for (size_t d = 0; d < dim_; ++d) gradients[d] = ops::exact::Fma(g, weights[d], gradients[d]);
    }
  }
}

ops::TransposedProduct FmHeads::WeightGradient(size_t examples, const ExampleScratch& scratch,
                                               float* out) const {
  ops::TransposedProduct p;
  p.rows = examples;
  p.m = dim_;
  p.n = tasks_;
  p.a = terms_.data();
  p.lda = dim_;
  p.b = scratch.gradients();
  p.ldb = tasks_;
  p.c = out;
  p.ldc = tasks_;
  return p;
}

}  // namespace strata
