#include "ops/nn/field_vectors.h"

#include <cstring>

#include "ops/exact_math.h"

namespace strata::ops {
namespace {

constexpr uint32_t kMaxDim = 4096;
constexpr float kZeros[kMaxDim] = {};

void Greatest(const float* v, const FeaturePlace& place, uint32_t feature, float* out,
              uint32_t* from) {
  for (uint32_t d = 0; d < place.dim; ++d) {
    if (!place.first && !(out[d] < v[d])) continue;
    out[d] = v[d];
    from[d] = feature;
  }
}

void Add(const float* v, const FeaturePlace& place, float value, float* out) {
  if (place.first) {
    for (uint32_t d = 0; d < place.dim; ++d) out[d] = v[d] * value;
  } else {
    for (uint32_t d = 0; d < place.dim; ++d) out[d] = exact::Fma(v[d], value, out[d]);
  }
}

// The gradient of one feature's vector, element by element.
struct GradientOf {
  const float* gradient;
  const uint32_t* from;  // null: not pooled by max
  uint32_t feature;
  float value;
  float operator[](uint32_t d) const {
    if (from == nullptr) return value * gradient[d];
    return from[d] == feature ? gradient[d] : 0.0f;
  }
};

struct GradientsOf {
  const VectorExamples& x;
  const VectorMatrix& gradient;
  const uint32_t* example;

  GradientOf operator()(uint32_t f, uint32_t) const {
    const FeaturePlace& place = x.places[f];
    if (place.column == FeaturePlace::kNowhere) return {kZeros, nullptr, f, 1.0f};
    const size_t at = gradient.Start(example[f]) + place.column;
    return {gradient.data + at, place.max ? gradient.from + at : nullptr, f,
            x.values == nullptr ? 1.0f : x.values[f]};
  }
};

}  // namespace

void GatherVectors(const VectorExamples& x, uint32_t begin, uint32_t end, uint32_t cleared,
                   const VectorMatrix& out) {
  constexpr uint32_t kAhead = 32;  // features
  for (uint32_t i = begin; i < end; ++i) {
    const size_t start = out.Start(i);
    float* const row = out.data + start;
    std::memset(row, 0, cleared * sizeof(float));
    for (uint32_t f = x.offsets[i]; f < x.offsets[i + 1]; ++f) {
      if (f + kAhead < x.offsets[end]) __builtin_prefetch(x.rows + x.places[f + kAhead].row);
      const FeaturePlace& place = x.places[f];
      if (place.column == FeaturePlace::kNowhere) continue;
      float* const to = row + place.column;
      if (place.max) {
        Greatest(x.rows + place.row, place, f, to, out.from + start + place.column);
      } else {
        Add(x.rows + place.row, place, x.values == nullptr ? 1.0f : x.values[f], to);
      }
    }
  }
}

void VectorGradients(const VectorExamples& x, const VectorMatrix& gradient, const uint32_t* example,
                     const KeyOccurrences& keys, uint32_t dim, float* out) {
  const auto prefetch = [&](uint32_t f) {
    if (x.places[f].column == FeaturePlace::kNowhere) return;
    __builtin_prefetch(gradient.data + gradient.Start(example[f]) + x.places[f].column);
  };
  CoalesceSum(keys, dim, GradientsOf{x, gradient, example}, prefetch, out, dim);
}

}  // namespace strata::ops
