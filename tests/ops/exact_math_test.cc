#include "ops/exact_math.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "tests/ops/golden_hash.h"

namespace strata::ops::exact {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Every 257th input, or all 2^32 under `tools/test --long`.
bool Long() {
  const char* value = std::getenv("STRATA_LONG");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

// The spacing of floats of the size of a finite `exact`: denormals have that of the least normal
// numbers.
template <typename Real>
Real SpacingAt(Real exact) {
  // 2^e <= |exact| < 2^(e + 1), read off the bits: std::frexp takes longer than all the rest.
  const uint64_t bits = std::bit_cast<uint64_t>(static_cast<double>(exact));
  const int e = std::max(static_cast<int>(bits >> 52 & 0x7ff) - 1023, -126);
  return std::bit_cast<double>(static_cast<uint64_t>(e - 23 + 1023) << 52);
}

// Distance of y from the true value in units of the last place of a float of that size. Infinite
// when one is a NaN or infinity and the other is not what rounding gives.
template <typename Real>
double ErrorInUlp(float y, Real exact) {
  if (std::isnan(exact) || std::isnan(y)) return std::isnan(exact) && std::isnan(y) ? 0 : 1e30;
  const float rounded = static_cast<float>(exact);
  if (std::isinf(exact)) return y == rounded ? 0 : 1e30;
  if (std::isinf(y) || std::isinf(rounded)) {
    // Overflow may begin one step early or late.
    const float largest = std::numeric_limits<float>::max();
    return std::abs(y) >= largest && std::abs(rounded) >= largest ? 0.5 : 1e30;
  }
  return static_cast<double>(std::abs(static_cast<Real>(y) - exact) / SpacingAt(exact));
}

struct Sweep {
  double worst = 0;
  float at = 0;
  uint64_t hash = 0;
  uint64_t hash_of_all = 0;  // --long only
};

template <typename Function, typename Exact>
Sweep SweepInputs(const Function& function, const Exact& exact) {
  Sweep sweep;
  GoldenHash hash, all;
  const bool every = Long();
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += every ? 1 : 257) {
    const float x = FromBits(static_cast<uint32_t>(bits));
    const float y = function(x);
    const bool sample = bits % 257 == 0;
    // 64 bits of mantissa for each 8th of the sample, which takes ten times as long; of the others
    // 53 bits, which are 2^-29 ulp away.
    const double error = bits % (8 * 257) == 0 ? ErrorInUlp(y, exact(static_cast<long double>(x)))
                                               : ErrorInUlp(y, exact(static_cast<double>(x)));
    if (error > sweep.worst) {
      sweep.worst = error;
      sweep.at = x;
    }
    if (sample) hash.Add(y);
    if (every) all.Add(y);
  }
  sweep.hash = hash.value();
  sweep.hash_of_all = all.value();
  return sweep;
}

void CheckSweep(const Sweep& sweep, double bound, uint64_t golden, uint64_t golden_of_all) {
  INFO("worst error " << sweep.worst << " ulp at " << sweep.at);
  CHECK(sweep.worst <= bound);
  CHECK(sweep.hash == golden);
  if (Long()) CHECK(sweep.hash_of_all == golden_of_all);
}

TEST_CASE("exp: error and golden bits", "[ops][exact]") {
  CheckSweep(SweepInputs([](float x) { return Exp(x); }, [](auto x) { return std::exp(x); }), 1.03,
             0x8a8b61946bb996f4, 0x0f8cacef90b8adb3);
}

TEST_CASE("log: error and golden bits", "[ops][exact]") {
  CheckSweep(SweepInputs([](float x) { return Log(x); }, [](auto x) { return std::log(x); }), 0.94,
             0x3bfaaaeb5afb870c, 0x59867a2348dda801);
}

TEST_CASE("log1p: error and golden bits", "[ops][exact]") {
  CheckSweep(SweepInputs([](float x) { return Log1p(x); }, [](auto x) { return std::log1p(x); }),
             1.5, 0x9c1cf549dacee646, 0xed023ea9f82be929);
}

TEST_CASE("sigmoid: error and golden bits", "[ops][exact]") {
  CheckSweep(SweepInputs([](float x) { return Sigmoid(x); },
                         [](auto x) { return 1 / (1 + std::exp(-x)); }),
             2.5, 0x239821599d43cca8, 0x8c4d14028d16dcbf);
}

TEST_CASE("softplus: error and golden bits", "[ops][exact]") {
  CheckSweep(
      SweepInputs([](float x) { return Softplus(x); },
                  [](auto x) { return (x < 0 ? 0 : x) + std::log1p(std::exp(-std::abs(x))); }),
      1.8, 0x8d3185fdde44371e, 0xb7f44a0644961143);
}

TEST_CASE("cosine of a 24-bit angle", "[ops][exact]") {
  GoldenHash hash;
  double worst = 0;
  const long double turn = 2 * std::acos(-1.0L);
  for (uint32_t n = 0; n < (1u << 24); n += 13) {
    const float y = Cos2Pi(n);
    hash.Add(y);
    const long double exact = std::cos(turn * n / (1 << 24));
    worst = std::max(worst, static_cast<double>(std::abs(y - exact)));
  }
  CHECK(worst < 9e-8);
  CHECK(Cos2Pi(0) == 1.0f);
  CHECK(Cos2Pi(1u << 22) == 0.0f);
  CHECK(Cos2Pi(2u << 22) == -1.0f);
  CHECK(Cos2Pi(3u << 22) == 0.0f);
  CHECK(hash.value() == 0x9959c7fb84c5867b);
}

TEST_CASE("ends and special values", "[ops][exact]") {
  CHECK(Exp(0.0f) == 1.0f);
  CHECK(Exp(kInfinity) == kInfinity);
  CHECK(Exp(-kInfinity) == 0.0f);
  CHECK(Exp(88.0f) < kInfinity);
  CHECK(Exp(89.0f) == kInfinity);
  CHECK(Exp(-103.0f) == 0x1p-149f);
  CHECK(Exp(-105.0f) == 0.0f);
  CHECK(std::isnan(Exp(kNan)));

  CHECK(Bits(Log(1.0f)) == 0);
  CHECK(Log(0.0f) == -kInfinity);
  CHECK(Log(-0.0f) == -kInfinity);
  CHECK(Log(kInfinity) == kInfinity);
  CHECK(std::isnan(Log(-1.0f)));
  CHECK(std::isnan(Log(-kInfinity)));
  CHECK(std::isnan(Log(kNan)));
  CHECK(Log(0x1p-149f) == Approx(-103.2789f));

  CHECK(Bits(Log1p(0.0f)) == 0);
  CHECK(Bits(Log1p(-0.0f)) == 0x80000000u);
  CHECK(Log1p(1e-30f) == 1e-30f);
  CHECK(Log1p(-1.0f) == -kInfinity);
  CHECK(Log1p(kInfinity) == kInfinity);
  CHECK(std::isnan(Log1p(-1.5f)));
  CHECK(std::isnan(Log1p(kNan)));

  CHECK(Sigmoid(0.0f) == 0.5f);
  CHECK(Sigmoid(kInfinity) == 1.0f);
  CHECK(Sigmoid(-kInfinity) == 0.0f);
  CHECK(std::isnan(Sigmoid(kNan)));

  CHECK(Softplus(kInfinity) == kInfinity);
  CHECK(Softplus(-kInfinity) == 0.0f);
  CHECK(Softplus(200.0f) == 200.0f);
  CHECK(std::isnan(Softplus(kNan)));

  CHECK(LogLoss(0.0f, 1.0f) == Softplus(0.0f));
  CHECK(LogLoss(3.0f, 1.0f) == Softplus(-3.0f));
  CHECK(LogLoss(3.0f, 0.0f) == Softplus(3.0f));
  CHECK(LogLoss(1000.0f, 0.0f) == 1000.0f);
  CHECK(LogLoss(1000.0f, 1.0f) == 0.0f);
}

TEST_CASE("exp and sigmoid do not fall, log does not either", "[ops][exact]") {
  // A reversal would let a better logit score worse. Neighbouring floats, in runs over the range.
  size_t reversed = 0;
  for (float start = -100.0f; start < 88.0f; start += 0.37f) {
    float x = start;
    for (int i = 0; i < 300; ++i) {
      const float next = std::nextafter(x, kInfinity);
      reversed += Exp(next) < Exp(x) ? 1 : 0;
      if (x > 0) reversed += Log(next) < Log(x) ? 1 : 0;
      x = next;
    }
  }
  CHECK(reversed == 0);
}

}  // namespace
}  // namespace strata::ops::exact
