#include "tools/generate/zipf.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

namespace strata {

TEST_CASE("the exponential is accurate", "[generate][zipf]") {
  double worst = 0;
  for (int i = -70'000; i <= 70'000; ++i) {
    const double x = i * 0.01 + 1e-5 * (i % 97);
    if (std::fabs(x) > 700) continue;
    const long double exact = std::exp(static_cast<long double>(x));
    worst = std::max(worst, static_cast<double>(std::fabs((NaturalExp(x) - exact) / exact)));
  }
  CHECK(worst < 2 * 2.3e-16);
  CHECK(NaturalExp(0) == 1.0);
}

TEST_CASE("ranks have Zipf's probabilities", "[generate][zipf]") {
  const double exponent = GENERATE(0.5, 1.0, 1.05, 2.0, 4.0);
  const uint64_t size = GENERATE(1u, 2u, 30u, 1'000'000u);
  CAPTURE(exponent, size);
  const ZipfDistribution zipf(size, exponent);
  RandomStream random(7);
  constexpr int kDraws = 200'000;
  constexpr size_t kShown = 20;  // the rest in one cell
  std::vector<double> counts(kShown + 1);
  bool in_range = true;
  for (int i = 0; i < kDraws; ++i) {
    const uint64_t rank = zipf.Draw(random);
    in_range &= rank < size;
    ++counts[std::min<uint64_t>(rank, kShown)];
  }
  CHECK(in_range);
  std::vector<double> weights(kShown + 1);
  double total = 0;
  for (uint64_t k = 1; k <= size; ++k) {
    const double w = std::pow(static_cast<double>(k), -exponent);
    weights[std::min<uint64_t>(k - 1, kShown)] += w;
    total += w;
  }
  for (size_t i = 0; i <= kShown; ++i) {
    CAPTURE(i);
    const double p = weights[i] / total;
    // Five standard deviations of a binomial count.
    CHECK(std::fabs(counts[i] - kDraws * p) <= 5 * std::sqrt(kDraws * p * (1 - p)) + 1e-6);
  }
}

TEST_CASE("streams are pure functions of their seed", "[generate][zipf]") {
  RandomStream a(1);
  RandomStream b(1);
  RandomStream c(2);
  const uint64_t first = a.Next();
  CHECK(first == b.Next());
  CHECK(first != c.Next());
  CHECK(first != a.Next());
}

}  // namespace strata
