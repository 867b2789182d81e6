// What optimizers do to one element, and what may happen to its gradient before: the arithmetic
// that every build of optimizer_kernels.cc, gradient_kernels.cc and the device's kernels share
// (EXACT.md rule 2). Equations: OptimizerKind in optimizer.h.
// Tested by tests/ops/optimizer_test.cc, tests/ops/cuda/rows/lanes_test.cc
#ifndef STRATA_OPS_OPTIMIZER_RULES_H_
#define STRATA_OPS_OPTIMIZER_RULES_H_

#include <cstdint>

#include "ops/exact_math.h"
#include "ops/inline.h"

namespace strata::ops {

// The scalars of a rule, worked out for one step.
struct RuleParameters {
  float rate = 0.0f;                 // learning rate; adam: x correction; ftrl: alpha
  float epsilon = 0.0f;              // adagrad, rowwise_adagrad, adam
  float beta1 = 0.0f, beta2 = 0.0f;  // adam
  float momentum = 0.0f;             // momentum, nesterov
  float beta = 0.0f;                 // ftrl
  float l1 = 0.0f, l2 = 0.0f;        // ftrl
};

namespace rules {

inline constexpr uint32_t kFirstNonFinite = 0x7f800000u;

// The absolute value's bits: at least kFirstNonFinite for infinities and NaN only.
STRATA_HD uint32_t Magnitude(float x) { return exact::Bits(x) & 0x7fffffffu; }

STRATA_HD uint32_t Max(uint32_t a, uint32_t b) { return a < b ? b : a; }

// Update changes its arguments; kStates of the two states are used.
struct Sgd {
  static constexpr uint32_t kStates = 0;
  float rate;
  STRATA_HD_MEMBER explicit Sgd(const RuleParameters& p) : rate(p.rate) {}
  STRATA_HD_MEMBER void Update(float g, float& w, float&, float&) const {
    w = exact::Fma(-rate, g, w);
  }
};

template <bool kNesterov>
struct Momentum {
  static constexpr uint32_t kStates = 1;
  float rate, momentum;
  STRATA_HD_MEMBER explicit Momentum(const RuleParameters& p)
      : rate(p.rate), momentum(p.momentum) {}
  STRATA_HD_MEMBER void Update(float g, float& w, float& v, float&) const {
    v = exact::Fma(momentum, v, g);
    w = exact::Fma(-rate, kNesterov ? exact::Fma(momentum, v, g) : v, w);
  }
};

struct Adagrad {
  static constexpr uint32_t kStates = 1;
  float rate, epsilon;
  STRATA_HD_MEMBER explicit Adagrad(const RuleParameters& p) : rate(p.rate), epsilon(p.epsilon) {}
  STRATA_HD_MEMBER void Update(float g, float& w, float& sum, float&) const {
    sum = exact::Fma(g, g, sum);
    w = w - exact::Div(rate * g, exact::Sqrt(sum) + epsilon);
  }
};

struct Adam {
  static constexpr uint32_t kStates = 2;
  float rate, epsilon, beta1, beta2, rest1, rest2;
  STRATA_HD_MEMBER explicit Adam(const RuleParameters& p)
      : rate(p.rate),
        epsilon(p.epsilon),
        beta1(p.beta1),
        beta2(p.beta2),
        rest1(1.0f - p.beta1),
        rest2(1.0f - p.beta2) {}
  STRATA_HD_MEMBER void Update(float g, float& w, float& m, float& v) const {
    m = exact::Fma(beta1, m, rest1 * g);
    v = exact::Fma(beta2, v, (rest2 * g) * g);
    w = w - exact::Div(rate * m, exact::Sqrt(v) + epsilon);
  }
};

// With y = -z and d = 1/eta + l2: w = (y - sgn(y) l1) / d, or 0 where |y| <= l1. Where w is not 0,
// y was w d + sgn(w) l1 (optimizer.h); the two l1 cancel on paper, so they are never added to each
// other: a small w beside a large l1 keeps its precision.
struct Ftrl {
  static constexpr uint32_t kStates = 2;  // z, n
  float rate, beta, l1, l2;
  STRATA_HD_MEMBER explicit Ftrl(const RuleParameters& p)
      : rate(p.rate), beta(p.beta), l1(p.l1), l2(p.l2) {}
  STRATA_HD_MEMBER void Update(float g, float& w, float& z, float& n) const {
    n = exact::Fma(g, g, n);
    const float d = exact::Div(beta + exact::Sqrt(n), rate) + l2;
    const bool live = w != 0.0f;
    const float rest = live ? exact::Fma(w, d, -g) : -(z + g);
    const float pull = live ? (w < 0.0f ? -l1 : l1) : 0.0f;  // y = rest + pull
    const float above = rest + (pull - l1);
    const float below = rest + (pull + l1);
    w = exact::Div(above > 0.0f ? above : (below < 0.0f ? below : 0.0f), d);
    z = -(rest + pull);
  }
};

// rowwise_adagrad: one accumulator a row. Its growth settles the row's rate, and the rest is Sgd at
// that rate. squares: sum of the squares of a row's gradient (row_norm.h).
STRATA_HD float GrownAccumulator(float accumulator, float squares, uint32_t dim) {
  return accumulator + exact::Div(squares, static_cast<float>(dim));
}
STRATA_HD float RowRate(const RuleParameters& p, float accumulator) {
  return exact::Div(p.rate, exact::Sqrt(accumulator) + p.epsilon);
}

// g cut to +-limit.
STRATA_HD float ClipValue(float limit, float g) {
  const float low = g < -limit ? -limit : g;
  return low > limit ? limit : low;
}

// Clipping by norm. Elements are first scaled by a power of two that brings the largest, of
// magnitude `worst` (as bits, finite), near 1, so that no square overflows or vanishes.
struct NormClip {
  uint32_t exponent;
  STRATA_HD_MEMBER explicit NormClip(uint32_t worst) : exponent(worst >> 23) {
    exponent = exponent < 1 ? 1 : exponent > 253 ? 253 : exponent;
  }
  STRATA_HD_MEMBER float Scale() const { return exact::FromBits((254 - exponent) << 23); }
  // norm: of the scaled elements.
  STRATA_HD_MEMBER bool IsLonger(float norm, float limit) const {
    return norm * exact::FromBits(exponent << 23) > limit;
  }
};

// The gradient of a row of one element: its norm is a magnitude, so the smaller limit decides.
struct ScalarClip {
  float limit;
  uint32_t limit_bits;
  STRATA_HD_MEMBER ScalarClip(float clip_value, float clip_norm) {
    const bool value = clip_value > 0.0f && !(clip_norm > 0.0f && clip_norm < clip_value);
    limit = value ? clip_value : clip_norm;
    limit_bits = limit > 0.0f ? exact::Bits(limit) : kFirstNonFinite;
  }
  STRATA_HD_MEMBER bool Cuts(float g) const {
    const uint32_t magnitude = Magnitude(g);
    return magnitude > limit_bits && magnitude < kFirstNonFinite;
  }
  STRATA_HD_MEMBER float Cut(float g) const { return Cuts(g) ? (g < 0.0f ? -limit : limit) : g; }
};

}  // namespace rules
}  // namespace strata::ops

#endif  // STRATA_OPS_OPTIMIZER_RULES_H_
