#include "ops/nn/embedding_kernels.h"

#include "ops/coalesce_sum.h"
#include "ops/exact_math.h"
#include "ops/inline.h"
#include "ops/nn/embedding_types.h"
#include "ops/nn/sparse_examples.h"

namespace strata::ops::STRATA_ISA {
namespace {

using exact::Fma;

// Examples whose rows are fetched ahead.
constexpr uint32_t kAhead = 4;
constexpr uint32_t kMaxDim = 4096;

STRATA_HD float ValueOf(const SparseExamples& x, uint32_t feature) {
  return x.values != nullptr ? x.values[feature] : 1.0f;
}

STRATA_HD uint32_t FieldOf(const SparseExamples& x, uint32_t feature, uint32_t example) {
  return x.fields != nullptr ? x.fields[feature] : feature - x.offsets[example];
}

STRATA_HD void Clear(uint32_t begin, uint32_t end, uint32_t dim, float* row) {
  for (size_t e = size_t{begin} * dim; e < size_t{end} * dim; ++e) row[e] = 0.0f;
}

STRATA_HD void Scale(const float* v, float value, uint32_t dim, float* out) {
  uint32_t d = 0;
  for (; d + 16 <= dim; d += 16) {
    for (uint32_t c = 0; c < 16; ++c) out[d + c] = v[d + c] * value;
  }
  for (; d < dim; ++d) out[d] = v[d] * value;
}

// The gradient of one feature's vector, element by element.
struct GradientRow {
  const float* gradient;
  float value;
  inline __attribute__((always_inline)) float operator[](uint32_t d) const {
    return value * gradient[d];
  }
};

struct GradientRows {
  const SparseExamples& x;
  const FieldMatrix& gradient;
  const uint32_t* example;
  uint32_t dim;
  const float* zeros;  // (kMaxDim): of fields beyond the matrix

  inline __attribute__((always_inline)) GradientRow operator()(uint32_t f, uint32_t) const {
    const uint32_t i = example[f];
    const uint32_t field = FieldOf(x, f, i);
    const float* row = gradient.data + i * gradient.stride + static_cast<size_t>(field) * dim;
    return {field < gradient.fields ? row : zeros, ValueOf(x, f)};
  }
};

struct PooledRows {
  const SparseExamples& x;
  const uint32_t* run_of;
  const float* gradient;

  inline __attribute__((always_inline)) GradientRow operator()(uint32_t f, uint32_t) const {
    return {gradient + run_of[f] * x.stride, ValueOf(x, f)};
  }
};

}  // namespace

void GatherEmbeddings(const SparseExamples& x, uint32_t dim, uint32_t begin, uint32_t end,
                      const FieldMatrix& out, uint32_t* example) {
  for (uint32_t i = begin; i < end; ++i) {
    if (i + kAhead < end) {
      for (uint32_t f = x.offsets[i + kAhead]; f < x.offsets[i + kAhead + 1]; ++f) {
        const float* row = x.rows + x.row[f] * x.stride;
        __builtin_prefetch(row);
        __builtin_prefetch(row + dim - 1);
      }
    }
    float* const row = out.data + i * out.stride;
    uint32_t next = 0;  // fields before are written
    for (uint32_t f = x.offsets[i]; f < x.offsets[i + 1]; ++f) {
      if (example != nullptr) example[f] = i;
      const uint32_t field = FieldOf(x, f, i);
      if (field >= out.fields) continue;
      Clear(next, field, dim, row);
      Scale(x.rows + x.row[f] * x.stride, ValueOf(x, f), dim,
            row + static_cast<size_t>(field) * dim);
      next = field + 1;
    }
    Clear(next, out.fields, dim, row);
  }
}

void EmbeddingGradients(const SparseExamples& x, uint32_t dim, const FieldMatrix& gradient,
                        const uint32_t* example, const KeyOccurrences& keys, float* out) {
  static const float zeros[kMaxDim] = {};
  const auto prefetch = [&](uint32_t f) {
    const uint32_t i = example[f];
    __builtin_prefetch(gradient.data + i * gradient.stride +
                       static_cast<size_t>(FieldOf(x, f, i)) * dim);
  };
  CoalesceSum(keys, dim, GradientRows{x, gradient, example, dim, zeros}, prefetch, out, x.stride);
}

void PoolRows(const SparseExamples& x, const FieldRuns& runs, uint32_t begin, uint32_t end,
              float* out) {
  const auto width = static_cast<uint32_t>(x.stride);
  for (uint32_t r = begin; r < end; ++r) {
    float* const sum = out + r * x.stride;
    uint32_t f = runs.first[r];
    Scale(x.rows + x.row[f] * x.stride, ValueOf(x, f), width, sum);
    while (++f < runs.first[r + 1]) {
      const float* const v = x.rows + x.row[f] * x.stride;
      const float value = ValueOf(x, f);
      for (uint32_t d = 0; d < width; ++d) sum[d] = Fma(v[d], value, sum[d]);
    }
  }
}

void PooledGradients(const SparseExamples& x, const FieldRuns& runs, const float* gradient,
                     const KeyOccurrences& keys, float* out) {
  const auto prefetch = [&](uint32_t f) {
    __builtin_prefetch(gradient + runs.run_of[f] * x.stride);
  };
  CoalesceSum(keys, static_cast<uint32_t>(x.stride), PooledRows{x, runs.run_of, gradient}, prefetch,
              out, x.stride);
}

}  // namespace strata::ops::STRATA_ISA
