// Elementary functions with the same bits on every machine, compiler and optimisation level
// (EXACT.md rules 2 and 3): integer operations, explicit fma, + - * / and sqrt only; no branches,
// so that loops over them vectorise, and no library calls, so that kernels of any instruction set
// and device code may include this file.
//
// Polynomials: near-minimax fits (Lawson's iteration in 120-bit arithmetic) whose coefficients are
// rounded to float one by one, the rest refitted after each. Errors in units in the last place
// (ulp), at most: Exp 1.03, Log 0.94, Log1p 1.5, Sigmoid 2.5, Softplus 1.8. A NaN gives a NaN (of
// unspecified payload); floating point state must be the default one (mxcsr.h).
#ifndef STRATA_OPS_EXACT_MATH_H_
#define STRATA_OPS_EXACT_MATH_H_

#include <cstdint>

#include "ops/inline.h"

namespace strata::ops::exact {

// EXACT.md rule 2: the device's correctly rounded operations, by name.
#ifdef __CUDA_ARCH__
STRATA_HD float Fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
STRATA_HD float Div(float a, float b) { return __fdiv_rn(a, b); }
STRATA_HD float Sqrt(float a) { return __fsqrt_rn(a); }
#else
STRATA_HD float Fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
STRATA_HD float Div(float a, float b) { return a / b; }
STRATA_HD float Sqrt(float a) { return __builtin_sqrtf(a); }
#endif

STRATA_HD uint32_t Bits(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  return bits;
}

STRATA_HD float FromBits(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, 4);
  return x;
}

STRATA_HD float Abs(float x) { return FromBits(Bits(x) & 0x7fffffffu); }

// e^x. 1.03 ulp, denormal results included; +infinity above 88.72, 0 below -103.98.
STRATA_HD float Exp(float x) {
  // Beyond these the result is infinity or 0 anyway, and n below stays within 8 bits. NaN passes.
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  // n = x / ln 2 rounded to an integer, in the low bits of `shifted`: adding 1.5 x 2^23 leaves no
  // room for a fraction. Integers come from bits, so no float is ever converted.
  const float shifted = Fma(x, 0x1.715476p+0f, 0x1.8p+23f);
  const int32_t n = static_cast<int32_t>(Bits(shifted) - 0x4b400000u);
  const float count = shifted - 0x1.8p+23f;
  // r = x - n ln 2 in two parts (Cody and Waite): the first has 15 bits, so that n times it is
  // exact.
  float r = Fma(count, -0x1.62e4p-1f, x);
  r = Fma(count, -0x1.7f7d1cp-20f, r);
  float q = 0x1.6d5646p-10f;
  q = Fma(q, r, 0x1.124426p-7f);
  q = Fma(q, r, 0x1.5554e0p-5f);
  q = Fma(q, r, 0x1.555482p-3f);
  q = Fma(q, r, 0.5f);
  const float p = 1.0f + Fma(q, r * r, r);
  // Times 2^n in two halves, so that each is a normal number and only the last product rounds.
  const int32_t half = n >> 1;
  const float low = FromBits(static_cast<uint32_t>(half + 127) << 23);
  const float high = FromBits(static_cast<uint32_t>(n - half + 127) << 23);
  return (p * low) * high;
}

// ln(1 + f) for f in [sqrt(1/2) - 1, sqrt(2) - 1], to be called by the functions below.
STRATA_HD float LogPolynomial(float f) {
  float p = -0x1.3dffacp-4f;
  p = Fma(p, f, 0x1.070cb2p-3f);
  p = Fma(p, f, -0x1.0d3bb8p-3f);
  p = Fma(p, f, 0x1.228bd6p-3f);
  p = Fma(p, f, -0x1.547274p-3f);
  p = Fma(p, f, 0x1.99a486p-3f);
  p = Fma(p, f, -0x1.000234p-2f);
  p = Fma(p, f, 0x1.55554ap-2f);
  p = Fma(p, f, -0.5f);
  return Fma(p, f * f, f);
}

// ln x. 0.94 ulp, denormals included; ln 0 = -infinity, NaN below 0.
STRATA_HD float Log(float x) {
  const bool denormal = x < 0x1p-126f;
  const float scaled = denormal ? x * 0x1p+23f : x;
  // x = m 2^k with m in [sqrt(1/2), sqrt(2)).
  const uint32_t offset = Bits(scaled) - 0x3f3504f3u;
  const int32_t k = (static_cast<int32_t>(offset) >> 23) - (denormal ? 23 : 0);
  const float m = FromBits((offset & 0x7fffffu) + 0x3f3504f3u);
  const float count = static_cast<float>(k);
  const float log_m = LogPolynomial(m - 1.0f);
  float y = Fma(count, 0x1.62e4p-1f, Fma(count, 0x1.7f7d1cp-20f, log_m));
  y = x < 0x1p+127f * 2.0f ? y : x;  // infinity and NaN
  y = x > 0.0f ? y : (x == 0.0f ? FromBits(0xff800000u) : FromBits(0x7fc00000u));
  return y;
}

// ln(1 + x). 1.5 ulp; ln 0 = -infinity at x = -1, NaN below. Keeps -0.
STRATA_HD float Log1p(float x) {
  const float u = 1.0f + x;
  const uint32_t offset = Bits(u) - 0x3f3504f3u;
  const int32_t k = static_cast<int32_t>(offset) >> 23;
  const float m = FromBits((offset & 0x7fffffu) + 0x3f3504f3u);
  // What rounding took from 1 + x, scaled like m. At k = 0 it is x - (m - 1), so f is x itself.
  const float lost = x > 1.0f ? 1.0f - (u - x) : x - (u - 1.0f);
  const int32_t capped = k > 126 ? 126 : k;  // beyond, `lost` no longer matters
  const float scale = FromBits(static_cast<uint32_t>(127 - capped) << 23);
  const float f = k == 0 ? x : Fma(lost, scale, m - 1.0f);
  const float count = static_cast<float>(k);
  float y = Fma(count, 0x1.62e4p-1f, Fma(count, 0x1.7f7d1cp-20f, LogPolynomial(f)));
  y = k == 0 ? LogPolynomial(x) : y;  // keeps the sign of zero
  y = u < 0x1p+127f * 2.0f ? y : u;   // infinity and NaN
  y = u > 0.0f ? y : (u == 0.0f ? FromBits(0xff800000u) : FromBits(0x7fc00000u));
  return y;
}

// 1 / (1 + e^-x). 2.5 ulp. Both ends from e^-|x|, so that small results keep their precision.
STRATA_HD float Sigmoid(float x) {
  const float e = Exp(-Abs(x));
  return Div(x < 0.0f ? e : 1.0f, 1.0f + e);
}

// ln(1 + e^x). 1.8 ulp. max(x, 0) + ln(1 + e^-|x|) never overflows.
STRATA_HD float Softplus(float x) { return (x < 0.0f ? 0.0f : x) + Log1p(Exp(-Abs(x))); }

// Logarithmic loss of logit z for label y (0 or 1): -y ln s(z) - (1 - y) ln(1 - s(z)) with s the
// sigmoid, computed as Softplus(z) or Softplus(-z). Labels above a half count as 1.
STRATA_HD float LogLoss(float z, float y) { return Softplus(y > 0.5f ? -z : z); }

// cos(2 pi n / 2^24) for n < 2^24: an angle that is a 24-bit integer needs no range reduction in
// floating point.
STRATA_HD float Cos2Pi(uint32_t n) {
  // n = quadrant 2^22 + rest, |rest| <= 2^21: an eighth of a turn.
  const uint32_t quadrant = ((n + 0x200000u) >> 22) & 3u;
  const int32_t rest = static_cast<int32_t>((n + 0x200000u) & 0x3fffffu) - 0x200000;
  const float t = static_cast<float>(rest) * 0x1p-24f;
  const float t2 = t * t;
  float s = -0x1.2e3b70p+6f;
  s = Fma(s, t2, 0x1.4667b4p+6f);
  s = Fma(s, t2, -0x1.4abbeep+5f);
  s = Fma(s, t2, 0x1.921fb6p+2f);
  const float sine = s * t;
  float c = 0x1.d6c45ep+5f;
  c = Fma(c, t2, -0x1.55b7aap+6f);
  c = Fma(c, t2, 0x1.03c1b6p+6f);
  c = Fma(c, t2, -0x1.3bd3ccp+4f);
  const float cosine = Fma(c, t2, 1.0f);
  // cos, -sin, -cos, sin of the rest.
  const float value = (quadrant & 1u) != 0 ? sine : cosine;
  return quadrant == 1u || quadrant == 2u ? -value : value;
}

}  // namespace strata::ops::exact

#endif  // STRATA_OPS_EXACT_MATH_H_
