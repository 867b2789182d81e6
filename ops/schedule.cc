#include "ops/schedule.h"

namespace strata::ops {
namespace {

uint64_t Bits(double x) { return __builtin_bit_cast(uint64_t, x); }
double FromBits(uint64_t bits) { return __builtin_bit_cast(double, bits); }

// x^n by squaring, the lowest bit of n first.
double IntegerPower(double x, uint64_t n) {
  double result = 1.0;
  for (double square = x; n != 0; n >>= 1, square *= square) {
    if ((n & 1) != 0) result *= square;
  }
  return result;
}

// Taylor series for |x| <= pi / 4; the first term left out is below 1e-17.
double Sine(double x) {
  const double y = x * x;
  double p = 1.0 / 355687428096000.0;  // 1 / 17!
  p = __builtin_fma(p, y, -1.0 / 1307674368000.0);
  p = __builtin_fma(p, y, 1.0 / 6227020800.0);
  p = __builtin_fma(p, y, -1.0 / 39916800.0);
  p = __builtin_fma(p, y, 1.0 / 362880.0);
  p = __builtin_fma(p, y, -1.0 / 5040.0);
  p = __builtin_fma(p, y, 1.0 / 120.0);
  p = __builtin_fma(p, y, -1.0 / 6.0);
  return __builtin_fma(p * y, x, x);
}

double Cosine(double x) {
  const double y = x * x;
  double p = 1.0 / 20922789888000.0;  // 1 / 16!
  p = __builtin_fma(p, y, -1.0 / 87178291200.0);
  p = __builtin_fma(p, y, 1.0 / 479001600.0);
  p = __builtin_fma(p, y, -1.0 / 3628800.0);
  p = __builtin_fma(p, y, 1.0 / 40320.0);
  p = __builtin_fma(p, y, -1.0 / 720.0);
  p = __builtin_fma(p, y, 1.0 / 24.0);
  p = __builtin_fma(p, y, -0.5);
  return __builtin_fma(p, y, 1.0);
}

// (1 + cos(pi u / T)) / 2 = cos^2(pi u / 2T) for u <= T: a square, so it never rounds below 0, and
// the argument, from whichever end is nearer, is at most pi / 4 without any range reduction.
double HalfCosine(uint64_t u, uint64_t steps) {
  constexpr double kHalfPi = 0x1.921fb54442d18p+0;
  const uint64_t left = steps - u;
  const double root =
      u <= left ? Cosine(kHalfPi * (static_cast<double>(u) / static_cast<double>(steps)))
                : Sine(kHalfPi * (static_cast<double>(left) / static_cast<double>(steps)));
  return root * root;
}

constexpr double kLn2High = 0x1.62e42fee00000p-1;  // 33 bits, so that n times it is exact
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

// ln x for normal x > 0: x = m 2^k with m in [sqrt(1/2), sqrt(2)), and ln m = 2 atanh((m - 1) /
// (m + 1)) by its series.
double Logarithm(double x) {
  constexpr uint64_t kRootHalf = 0x3fe6a09e667f3bcdull;
  const uint64_t offset = Bits(x) - kRootHalf;
  const auto k = static_cast<double>(static_cast<int64_t>(offset) >> 52);
  const double m = FromBits((offset & 0xfffffffffffffull) + kRootHalf);
  const double s = (m - 1.0) / (m + 1.0);
  const double y = s * s;
  double p = 1.0 / 23.0;
  for (int n = 21; n >= 3; n -= 2) p = __builtin_fma(p, y, 1.0 / n);
  const double log_m = 2.0 * __builtin_fma(p * y, s, s);
  return __builtin_fma(k, kLn2High, __builtin_fma(k, kLn2Low, log_m));
}

// e^x for x <= 0; 0 below -708.
double Exponential(double x) {
  if (x < -708.0) return 0.0;
  const double shifted = __builtin_fma(x, 0x1.71547652b82fep+0, 0x1.8p+52);
  const double n = shifted - 0x1.8p+52;
  double r = __builtin_fma(n, -kLn2High, x);
  r = __builtin_fma(n, -kLn2Low, r);
  double p = 1.0;
  for (int i = 14; i >= 1; --i) p = __builtin_fma(p / i, r, 1.0);
  // n >= -1022: adding 1.5 x 2^52 left it in the low bits of `shifted`.
  const uint64_t exponent = Bits(shifted) - 0x4338000000000000ull + 1023u;
  return p * FromBits(exponent << 52);
}

// (left / steps)^power for left <= steps.
double Power(uint64_t left, uint64_t steps, float power) {
  if (left == 0) return 0.0;
  const double base = static_cast<double>(left) / static_cast<double>(steps);
  // Whole powers, which are the usual ones, come out as repeated products.
  if (power >= 1.0f && power < 0x1p+24f) {
    const auto whole = static_cast<uint64_t>(power);
    if (static_cast<float>(whole) == power) return IntegerPower(base, whole);
  }
  return Exponential(static_cast<double>(power) * Logarithm(base));
}

}  // namespace

double ScheduleFactor(const ScheduleConfig& config, uint64_t t) {
  if (t < config.warmup_steps) {
    return static_cast<double>(t + 1) / static_cast<double>(config.warmup_steps);
  }
  const uint64_t u = t - config.warmup_steps;
  const uint64_t steps = config.decay_steps;
  const uint64_t done = u < steps ? u : steps;
  const auto last = static_cast<double>(config.final_factor);
  switch (config.kind) {
    case ScheduleKind::kConstant:
      return 1.0;
    case ScheduleKind::kStep:
      return IntegerPower(static_cast<double>(config.gamma), u / steps);
    case ScheduleKind::kCosine:
      return __builtin_fma(1.0 - last, HalfCosine(done, steps), last);
    case ScheduleKind::kPoly:
      return __builtin_fma(1.0 - last, Power(steps - done, steps, config.power), last);
  }
  return 1.0;
}

}  // namespace strata::ops
