#include "ops/natural_log.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>

#include "proto/core/position.h"

namespace strata::ops {
namespace {

// Of ln(x), in units of its last place.
double ErrorOf(double x) {
  const long double exact = std::log(static_cast<long double>(x));
  const double got = NaturalLog(x);
  const double ulp = std::nextafter(std::fabs(got), INFINITY) - std::fabs(got);
  return std::fabs(static_cast<double>(static_cast<long double>(got) - exact)) / ulp;
}

TEST_CASE("the logarithm is within two units in the last place", "[ops]") {
  double worst = 0;
  for (uint64_t i = 2; i < 200'000; ++i) {
    const double x =
        i < 100'000 ? static_cast<double>(i) : static_cast<double>(Mix64(i) >> (i % 63));
    if (x > 1) worst = std::max(worst, ErrorOf(x));
  }
  // Predictions: floats of any size.
  for (uint64_t i = 0; i < 100'000; ++i) {
    const double x = std::ldexp(1 + static_cast<double>(Mix64(i) >> 41) * 0x1p-23,
                                static_cast<int>(i % 276) - 149);
    if (x != 1) worst = std::max(worst, ErrorOf(x));
  }
  CHECK(NaturalLog(1.0) == 0.0);
  CHECK(worst < 2.0);
}

}  // namespace
}  // namespace strata::ops
