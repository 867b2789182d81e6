// Built once per instruction set: no inline std or Abseil code here (isa.bzl).
#include "ops/gradient_kernels.h"

#include "ops/exact_math.h"
#include "ops/optimizer_rules.h"
#include "ops/row_norm.h"

namespace strata::ops::STRATA_ISA {
namespace {

using rules::kFirstNonFinite;

// out = sums / examples; returns the largest magnitude, as bits.
inline uint32_t Divide(const float* sums, float examples, uint32_t dim, float* out) {
  uint32_t worst = 0;
  for (uint32_t d = 0; d < dim; ++d) {
    const float g = sums[d] / examples;
    out[d] = g;
    worst = rules::Max(worst, rules::Magnitude(g));
  }
  return worst;
}

inline void ClipValue(float limit, uint32_t dim, float* g) {
  for (uint32_t d = 0; d < dim; ++d) g[d] = rules::ClipValue(limit, g[d]);
}

// True if g, whose largest magnitude is `worst` (as bits, finite), was longer than `limit` and is
// now that long.
inline bool ClipNorm(float limit, uint32_t worst, uint32_t dim, float* g) {
  const rules::NormClip clip(worst);
  const float scale = clip.Scale();
  const float norm = exact::Sqrt(SumOfSquares(g, 1.0f, scale, dim));
  if (!clip.IsLonger(norm, limit)) return false;
  const float factor = limit / norm;
  for (uint32_t d = 0; d < dim; ++d) g[d] = (g[d] * scale) * factor;
  return true;
}

void PrepareScalars(const PrepareArguments& a) {
  const rules::ScalarClip clip(a.clip_value, a.clip_norm);
  for (size_t i = 0; i < a.n; ++i) {
    const float g = a.gradient_sums[i * a.gradient_stride] / a.examples;
    const float cut = clip.Cut(g);
    a.clipped[i] = clip.Cuts(g) ? 1 : 0;
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
    if (a.clip_value > 0.0f && worst > exact::Bits(a.clip_value)) {
      ClipValue(a.clip_value, a.dim, g);
      worst = exact::Bits(a.clip_value);
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
