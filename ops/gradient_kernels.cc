// Built once per instruction set: no inline std or Abseil code here (isa.bzl).
#include "ops/gradient_kernels.h"

#include "ops/row_norm.h"

namespace strata::ops::STRATA_ISA {
namespace {

constexpr uint32_t kFirstNonFinite = 0x7f800000u;

inline uint32_t Bits(float x) { return __builtin_bit_cast(uint32_t, x); }
inline float FromBits(uint32_t bits) { return __builtin_bit_cast(float, bits); }

// out = sums / examples; returns the largest magnitude, as bits.
inline uint32_t Divide(const float* sums, float examples, uint32_t dim, float* out) {
  uint32_t worst = 0;
  for (uint32_t d = 0; d < dim; ++d) {
    const float g = sums[d] / examples;
    out[d] = g;
    const uint32_t magnitude = Bits(g) & 0x7fffffffu;
    worst = magnitude > worst ? magnitude : worst;
  }
  return worst;
}

inline void ClipValue(float limit, uint32_t dim, float* g) {
  for (uint32_t d = 0; d < dim; ++d) {
    const float low = g[d] < -limit ? -limit : g[d];
    g[d] = low > limit ? limit : low;
  }
}

// Elements are scaled by a power of two that brings the largest, of magnitude `worst` (as bits,
// finite), near 1, so that no square overflows or vanishes. True if g was longer than
// `limit` and is now that long.
inline bool ClipNorm(float limit, uint32_t worst, uint32_t dim, float* g) {
  uint32_t exponent = worst >> 23;
  exponent = exponent < 1 ? 1 : exponent > 253 ? 253 : exponent;
  const float scale = FromBits((254 - exponent) << 23);
  const float norm = __builtin_sqrtf(SumOfSquares(g, 1.0f, scale, dim));
  const bool longer = norm * FromBits(exponent << 23) > limit;
  if (!longer) return false;
  const float factor = limit / norm;
  for (uint32_t d = 0; d < dim; ++d) g[d] = (g[d] * scale) * factor;
  return true;
}

// Rows of one element: a norm is a magnitude, so the smaller limit decides.
void PrepareScalars(const PrepareArguments& a) {
  const bool value = a.clip_value > 0.0f && !(a.clip_norm > 0.0f && a.clip_norm < a.clip_value);
  const float limit = value ? a.clip_value : a.clip_norm;
  const uint32_t limit_bits = limit > 0.0f ? Bits(limit) : kFirstNonFinite;
  for (size_t i = 0; i < a.n; ++i) {
    const float g = a.gradient_sums[i * a.gradient_stride] / a.examples;
    const uint32_t magnitude = Bits(g) & 0x7fffffffu;
    const bool clipped = magnitude > limit_bits && magnitude < kFirstNonFinite;
    const float cut = clipped ? (g < 0.0f ? -limit : limit) : g;
    a.clipped[i] = clipped ? 1 : 0;
    a.gradients[i] =
        a.weight_decay == 0.0f ? cut : __builtin_fmaf(a.weight_decay, a.weights[i][0], cut);
  }
}

}  // namespace

void PrepareGradients(const PrepareArguments& a) {
  if (a.dim == 1) return PrepareScalars(a);
  for (size_t i = 0; i < a.n; ++i) {
    float* g = a.gradients + i * a.dim;
    uint32_t worst = Divide(a.gradient_sums + i * a.gradient_stride, a.examples, a.dim, g);
    a.clipped[i] = 0;
    if (worst >= kFirstNonFinite) continue;
    if (a.clip_value > 0.0f && worst > Bits(a.clip_value)) {
      ClipValue(a.clip_value, a.dim, g);
      worst = Bits(a.clip_value);
      a.clipped[i] = 1;
    }
    if (a.clip_norm > 0.0f && ClipNorm(a.clip_norm, worst, a.dim, g)) {
      a.clipped[i] = 1;
    }
    if (a.weight_decay == 0.0f) continue;
    const float* weights = a.weights[i];
    for (uint32_t d = 0; d < a.dim; ++d) g[d] = __builtin_fmaf(a.weight_decay, weights[d], g[d]);
  }
}

}  // namespace strata::ops::STRATA_ISA
