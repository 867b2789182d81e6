#include "ops/nn/fm_kernels.h"

#include "ops/coalesce_sum.h"
#include "ops/exact_math.h"
#include "ops/inline.h"
#include "ops/nn/fm_terms.h"
#include "ops/nn/fm_types.h"
#include "ops/nn/sparse_examples.h"

namespace strata::ops::STRATA_ISA {
namespace {

// Examples whose rows are fetched ahead.
constexpr uint32_t kAhead = 4;

// Adds one v x to the sums of kWidth columns, and stores it where asked.
template <uint32_t kWidth>
STRATA_HD void AddTerm(const float* v, float value, float* sum, float* square, float* store) {
  float term[kWidth];
  for (uint32_t d = 0; d < kWidth; ++d) term[d] = v[d] * value;
  for (uint32_t d = 0; d < kWidth; ++d) sum[d] = sum[d] + term[d];
  for (uint32_t d = 0; d < kWidth; ++d) square[d] = exact::Fma(term[d], term[d], square[d]);
  if (store != nullptr) {
    for (uint32_t d = 0; d < kWidth; ++d) store[d] = term[d];
  }
}

template <uint32_t kWidth>
STRATA_HD void ClearSlots(uint32_t begin, uint32_t end, uint32_t dim, float* store) {
  for (uint32_t slot = begin; slot < end; ++slot) {
    float* to = store + static_cast<size_t>(slot) * dim;
    for (uint32_t d = 0; d < kWidth; ++d) to[d] = 0.0f;
  }
}

// Columns column .. column + kWidth - 1 of example i; adds (sum v x)^2 - sum (v x)^2 to `lanes`,
// element by element (EXACT.md rule 5).
template <uint32_t kWidth>
STRATA_HD void Columns(const SparseExamples& x, uint32_t i, uint32_t dim, uint32_t column,
                       const float* numeric_embedding, const FmOutputs& out, float* lanes) {
  float sum[kWidth] = {}, square[kWidth] = {};
  float* store = out.embeddings == nullptr
                     ? nullptr
                     : out.embeddings + static_cast<size_t>(i) * out.embeddings_stride + column;
  const uint32_t slots = store != nullptr ? out.fields : 0;
  uint32_t next = 0;  // slots before are written
  for (uint32_t f = x.offsets[i]; f < x.offsets[i + 1]; ++f) {
    const uint32_t slot = FieldOf(x, f, i);
    ClearSlots<kWidth>(next, slot < slots ? slot : slots, dim, store);
    AddTerm<kWidth>(x.rows + x.row[f] * x.stride + column, ValueOf(x, f), sum, square,
                    slot < slots ? store + static_cast<size_t>(slot) * dim : nullptr);
    next = slot + 1;
  }
  ClearSlots<kWidth>(next, slots, dim, store);
  if (numeric_embedding != nullptr) {
    const float* numeric = x.numeric + static_cast<size_t>(i) * x.numeric_count;
    for (uint32_t j = 0; j < x.numeric_count; ++j) {
      AddTerm<kWidth>(numeric_embedding + static_cast<size_t>(j) * dim + column, numeric[j], sum,
                      square, nullptr);
    }
  }
  float* sums = out.sums + static_cast<size_t>(i) * dim + column;
  for (uint32_t d = 0; d < kWidth; ++d) sums[d] = sum[d];
  for (uint32_t d = 0; d < kWidth; ++d) lanes[d] = lanes[d] + FmSecondOrder(sum[d], square[d]);
}

STRATA_HD float Fold(float* lanes) {
  for (uint32_t half = 8; half > 0; half /= 2) {
    for (uint32_t d = 0; d < half; ++d) lanes[d] = lanes[d] + lanes[d + half];
  }
  return lanes[0];
}

// The gradient of feature f's embedding, element by element. kEmbeddings: with what comes from
// FmGradientInputs::embeddings.
template <bool kEmbeddings>
struct GradientRow {
  const float* v;
  const float* sum;
  const float* embedding;
  float gradient;
  float value;
  STRATA_HD float Of(const GradientRow& r, uint32_t d) {
    return kEmbeddings ? FmGradientOf(r.v[d], r.value, r.sum[d], r.gradient, r.embedding[d])
                       : FmGradientOf(r.v[d], r.value, r.sum[d], r.gradient);
  }
  inline __attribute__((always_inline)) float operator[](uint32_t d) const { return Of(*this, d); }
};

template <bool kEmbeddings>
struct GradientRows {
  const SparseExamples& x;
  const FmGradientInputs& in;
  uint32_t dim;
  const float* zeros;

  inline __attribute__((always_inline)) GradientRow<kEmbeddings> operator()(uint32_t f,
                                                                            uint32_t key) const {
    const uint32_t i = in.example[f];
    const float* embedding = nullptr;
    if (kEmbeddings) {
      const uint32_t slot = FieldOf(x, f, i);
      embedding = slot < in.fields
                      ? in.embeddings + i * in.embeddings_stride + static_cast<size_t>(slot) * dim
                      : zeros;
    }
    return {x.rows + key * x.stride, in.sums + static_cast<size_t>(i) * dim, embedding,
            in.gradient[i], ValueOf(x, f)};
  }
};

}  // namespace

void LinearForward(const SparseExamples& x, uint32_t column, float bias,
                   const float* numeric_weight, uint32_t begin, uint32_t end, float* logits,
                   uint32_t* example) {
  for (uint32_t i = begin; i < end; ++i) {
    if (example != nullptr) {
      for (uint32_t f = x.offsets[i]; f < x.offsets[i + 1]; ++f) example[f] = i;
    }
    logits[i] = FmLinear(x, i, column, bias, numeric_weight, 1);
  }
}

void FmForward(const SparseExamples& x, uint32_t dim, float bias, const float* numeric_weight,
               const float* numeric_embedding, uint32_t begin, uint32_t end, const FmOutputs& out) {
  for (uint32_t i = begin; i < end; ++i) {
    if (i + kAhead < end) {
      for (uint32_t f = x.offsets[i + kAhead]; f < x.offsets[i + kAhead + 1]; ++f) {
        const float* row = x.rows + x.row[f] * x.stride;
        __builtin_prefetch(row);
        __builtin_prefetch(row + dim);
      }
    }
    if (out.example != nullptr) {
      for (uint32_t f = x.offsets[i]; f < x.offsets[i + 1]; ++f) out.example[f] = i;
    }
    float lanes[16] = {};
    uint32_t d = 0;
    for (; d + 16 <= dim; d += 16) Columns<16>(x, i, dim, d, numeric_embedding, out, lanes);
    for (; d + 4 <= dim; d += 4) Columns<4>(x, i, dim, d, numeric_embedding, out, lanes + d % 16);
    for (; d < dim; ++d) Columns<1>(x, i, dim, d, numeric_embedding, out, lanes + d % 16);
    out.logits[i] = FmLogit(Fold(lanes), FmLinear(x, i, dim, bias, numeric_weight, 1));
  }
}

void FmEmbeddingGradients(const SparseExamples& x, uint32_t dim, const FmGradientInputs& in,
                          const KeyOccurrences& keys, float* out) {
  if (in.embeddings == nullptr) {
    const auto prefetch = [&](uint32_t) {};
    CoalesceSum(keys, dim, GradientRows<false>{x, in, dim, nullptr}, prefetch, out, x.stride);
    return;
  }
  constexpr uint32_t kMaxDim = 4096;
  static const float zeros[kMaxDim] = {};
  const auto prefetch = [&](uint32_t f) {
    const uint32_t i = in.example[f];
    __builtin_prefetch(in.embeddings + i * in.embeddings_stride +
                       static_cast<size_t>(FieldOf(x, f, i)) * dim);
  };
  CoalesceSum(keys, dim, GradientRows<true>{x, in, dim, zeros}, prefetch, out, x.stride);
}

}  // namespace strata::ops::STRATA_ISA
