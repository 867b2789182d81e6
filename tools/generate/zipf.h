// Zipf-distributed integers, the same on every machine.
#ifndef STRATA_TOOLS_GENERATE_ZIPF_H_
#define STRATA_TOOLS_GENERATE_ZIPF_H_

#include <cstdint>

namespace strata {

// e^x in double precision within 2 ulp, by + - * and fma alone (glibc's changes bits with the CPU).
// REQUIRES: |x| <= 700.
double NaturalExp(double x);

// Counter-based random numbers: draw i is Mix64(seed + i * 0x9e3779b97f4a7c15), i = 1, 2, ...
// (SplitMix64). A pure function of its seed.
class RandomStream {
 public:
  explicit RandomStream(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  // In (0, 1): 53 bits and a half.
  double Uniform() { return (static_cast<double>(Next() >> 11) + 0.5) * 0x1p-53; }

 private:
  uint64_t state_;
};

// Ranks 0 .. size-1 with probability proportional to (rank + 1)^-exponent, by rejection-inversion
// (Hoermann and Derflinger, ACM TOMACS 6(3), 1996). Immutable; any thread.
class ZipfDistribution {
 public:
  // REQUIRES: size >= 1, 0 < exponent <= 10.
  ZipfDistribution(uint64_t size, double exponent);

  uint64_t Draw(RandomStream& random) const;

 private:
  // The integral of h(x) = x^-exponent, its inverse, and h.
  double Integral(double x) const;
  double InverseIntegral(double y) const;
  double Density(double x) const;

  const double size_;
  const double exponent_;
  const double one_minus_;  // 1 - exponent; 0 where that is below 1e-9
  double high_ = 0;         // Integral(size + 1/2)
  double span_ = 0;         // Integral(3/2) - 1 - high_
  double accept_ = 0;       // at most this far from a whole number: accept without computing
};

}  // namespace strata

#endif  // STRATA_TOOLS_GENERATE_ZIPF_H_
