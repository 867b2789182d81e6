#include "tools/generate/zipf.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "ops/natural_log.h"
#include "proto/core/position.h"

namespace strata {

double NaturalExp(double x) {
  // x = n ln 2 + r, |r| <= ln 2 / 2; adding 1.5 * 2^52 rounds to an integer.
  const double shifted = std::fma(x, 0x1.71547652b82fep+0, 0x1.8p52);
  const double n = shifted - 0x1.8p52;
  double r = std::fma(n, -0x1.62e42fefa38p-1, x);
  r = std::fma(n, -0x1.ef35793c7673p-45, r);
  double p = 1.0 / 6227020800.0;  // Taylor: the first term left out is below 2^-56
  for (const double term :
       {1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0,
        1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 1.0 / 2.0, 1.0, 1.0}) {
    p = std::fma(p, r, term);
  }
  const int64_t exponent = static_cast<int64_t>(n);
  return p * std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

uint64_t RandomStream::Next() {
  state_ += 0x9e3779b97f4a7c15ull;
  return Mix64(state_);
}

ZipfDistribution::ZipfDistribution(uint64_t size, double exponent)
    : size_(static_cast<double>(size)),
      exponent_(exponent),
      one_minus_(std::fabs(1.0 - exponent) < 1e-9 ? 0.0 : 1.0 - exponent) {
  high_ = Integral(size_ + 0.5);
  span_ = Integral(1.5) - 1.0 - high_;
  accept_ = 2.0 - InverseIntegral(Integral(2.5) - Density(2.0));
}

double ZipfDistribution::Integral(double x) const {
  const double ln = ops::NaturalLog(x);
  return one_minus_ == 0.0 ? ln : (NaturalExp(one_minus_ * ln) - 1.0) / one_minus_;
}

double ZipfDistribution::InverseIntegral(double y) const {
  if (one_minus_ == 0.0) return NaturalExp(y);
  const double inner = std::max(0x1p-1000, 1.0 + one_minus_ * y);
  return NaturalExp(ops::NaturalLog(inner) / one_minus_);
}

double ZipfDistribution::Density(double x) const {
  return NaturalExp(-exponent_ * ops::NaturalLog(x));
}

uint64_t ZipfDistribution::Draw(RandomStream& random) const {
  if (size_ == 1.0) return 0;
  while (true) {
    const double u = high_ + random.Uniform() * span_;  // in (Integral(3/2) - 1, high)
    const double x = InverseIntegral(u);
    const double k = std::clamp(std::floor(x + 0.5), 1.0, size_);
    if (k - x <= accept_ || u >= Integral(k + 0.5) - Density(k)) {
      return static_cast<uint64_t>(k) - 1;
    }
  }
}

}  // namespace strata
