#include "ops/nn/fm_heads.h"

#include <cstring>

#include "ops/exact_math.h"
#include "ops/nn/fm_terms.h"

namespace strata::ops {
namespace {

// One embedding's v x: added to the sums, its squares to `squares`, and stored where asked.
void AddTerms(const float* v, float value, uint32_t dim, float* sums, float* squares,
              float* store) {
  for (uint32_t d = 0; d < dim; ++d) {
    const float term = AddFmTerm(v[d], value, &sums[d], &squares[d]);
    if (store != nullptr) store[d] = term;
  }
}

struct GradientRow {
  const float* v;
  const float* sum;
  const float* gradient;
  const float* embedding;  // or null
  float value;
  float operator[](uint32_t d) const {
    return embedding == nullptr ? FmGradientOf(v[d], value, sum[d], gradient[d])
                                : FmGradientOf(v[d], value, sum[d], gradient[d], embedding[d]);
  }
};

struct GradientRows {
  const SparseExamples& x;
  const FmGradientInputs& in;
  const float* term_gradients;
  uint32_t dim;

  GradientRow operator()(uint32_t f, uint32_t key) const {
    const uint32_t i = in.example[f];
    const size_t at = static_cast<size_t>(i) * dim;
    const float* embedding = nullptr;
    if (in.embeddings != nullptr) {
      const uint32_t slot = FieldOf(x, f, i);
      if (slot < in.fields) {
        embedding = in.embeddings + i * in.embeddings_stride + static_cast<size_t>(slot) * dim;
      }
    }
    return {x.rows + key * x.stride, in.sums + at, term_gradients + at, embedding, ValueOf(x, f)};
  }
};

}  // namespace

void FmTerms(const SparseExamples& x, uint32_t dim, const float* numeric_embedding, uint32_t begin,
             uint32_t end, const FmOutputs& out, float* terms) {
  for (uint32_t i = begin; i < end; ++i) {
    float* const sums = out.sums + static_cast<size_t>(i) * dim;
    float* const squares = terms + static_cast<size_t>(i) * dim;
    std::memset(sums, 0, dim * sizeof(float));
    std::memset(squares, 0, dim * sizeof(float));
    float* const fields =
        out.embeddings == nullptr ? nullptr : out.embeddings + i * out.embeddings_stride;
    if (fields != nullptr) {
      std::memset(fields, 0, static_cast<size_t>(out.fields) * dim * sizeof(float));
    }
    for (uint32_t f = x.offsets[i]; f < x.offsets[i + 1]; ++f) {
      if (out.example != nullptr) out.example[f] = i;
      const uint32_t slot = FieldOf(x, f, i);
      float* const store = fields != nullptr && slot < out.fields
                               ? fields + static_cast<size_t>(slot) * dim
                               : nullptr;
      AddTerms(x.rows + x.row[f] * x.stride, ValueOf(x, f), dim, sums, squares, store);
    }
    if (numeric_embedding != nullptr) {
      const float* const numeric = x.numeric + static_cast<size_t>(i) * x.numeric_count;
      for (uint32_t j = 0; j < x.numeric_count; ++j) {
        AddTerms(numeric_embedding + static_cast<size_t>(j) * dim, numeric[j], dim, sums, squares,
                 nullptr);
      }
    }
    for (uint32_t d = 0; d < dim; ++d) squares[d] = 0.5f * FmSecondOrder(sums[d], squares[d]);
  }
}

void FmTermGradients(const SparseExamples& x, uint32_t dim, const FmGradientInputs& in,
                     const float* term_gradients, const KeyOccurrences& keys, float* out) {
  const auto prefetch = [](uint32_t) {};
  CoalesceSum(keys, dim, GradientRows{x, in, term_gradients, dim}, prefetch, out, x.stride);
}

}  // namespace strata::ops
