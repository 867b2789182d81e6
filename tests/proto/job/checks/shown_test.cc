#include "proto/job/checks/shown.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace strata {
namespace {

TEST_CASE("a number is shown in as many digits as tell it", "[shown]") {
  CHECK(ShownNumber(0.0) == "0");
  CHECK(ShownNumber(0.1) == "0.1");
  CHECK(ShownNumber(-2.5) == "-2.5");
  CHECK(ShownNumber(1e-10) == "1e-10");
  CHECK(ShownNumber(1e9) == "1e+09");
  CHECK(ShownNumber(1700000100.0) == "1700000100");
  CHECK(ShownNumber(1234567.1) == "1234567.1");
  CHECK(ShownNumber(0.1f) == "0.1");
  CHECK(ShownNumber(0.2000001f) == "0.2000001");
  CHECK(ShownNumber(std::numeric_limits<double>::infinity()) == "inf");
}

TEST_CASE("no two numbers are shown alike", "[shown]") {
  for (int e = -30; e <= 30; ++e) {
    for (const double leading : {1.0, 1.7000001, 2.0 / 3, 9.87654321098765}) {
      const double x = leading * std::pow(10.0, e);
      INFO(ShownNumber(x));
      double back = 0;
      REQUIRE(absl::SimpleAtod(ShownNumber(x), &back));
      CHECK(back == x);
      CHECK(ShownNumber(x) != ShownNumber(std::nextafter(x, 2 * x)));
      const auto y = static_cast<float>(x);
      float float_back = 0;
      REQUIRE(absl::SimpleAtof(ShownNumber(y), &float_back));
      CHECK(float_back == y);
    }
  }
}

TEST_CASE("a text is shown in one line", "[shown]") {
  CHECK(ShownText("plain 'text' \xc3\xa9 \\") == "plain 'text' \xc3\xa9 \\");
  CHECK(ShownText("a\nb\tc\r") == "a\\nb\\tc\\r");
  CHECK(ShownText(absl::string_view("\0\x7f", 2)) == "\\x00\\x7f");
}

}  // namespace
}  // namespace strata
