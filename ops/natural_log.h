// The natural logarithm, the same bits on every machine (EXACT.md rule 3).
#ifndef STRATA_OPS_NATURAL_LOG_H_
#define STRATA_OPS_NATURAL_LOG_H_

#include <bit>
#include <cmath>
#include <cstdint>

namespace strata::ops {

// ln(x) in double precision, within 2 ulp, by + - * / and fma alone. ln(x) = e ln 2 + 2 atanh(s)
// with x = m 2^e, sqrt(1/2) < m <= sqrt(2), s = (m - 1) / (m + 1), |s| < 0.172; the series of atanh
// is cut where its terms fall below 2^-56. Double, because floor(ln(x)^2) of integers needs it.
// REQUIRES: x is finite, normal and > 0.
inline double NaturalLog(double x) {
  uint64_t bits = std::bit_cast<uint64_t>(x);
  int64_t exponent = static_cast<int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffull) | 0x3ff0000000000000ull);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double p = 1.0 / 21.0;
  p = std::fma(p, z, 1.0 / 19.0);
  p = std::fma(p, z, 1.0 / 17.0);
  p = std::fma(p, z, 1.0 / 15.0);
  p = std::fma(p, z, 1.0 / 13.0);
  p = std::fma(p, z, 1.0 / 11.0);
  p = std::fma(p, z, 1.0 / 9.0);
  p = std::fma(p, z, 1.0 / 7.0);
  p = std::fma(p, z, 1.0 / 5.0);
  p = std::fma(p, z, 1.0 / 3.0);
  const double atanh2 = std::fma(2.0 * s * z, p, 2.0 * s);
  // ln 2 in two parts, so that exponent * high is exact.
  constexpr double kLn2High = 0x1.62e42fefa38p-1;
  constexpr double kLn2Low = 0x1.ef35793c7673p-45;
  const double e = static_cast<double>(exponent);
  return std::fma(e, kLn2High, std::fma(e, kLn2Low, atanh2));
}

}  // namespace strata::ops

#endif  // STRATA_OPS_NATURAL_LOG_H_
