#include "tools/cli/plot/scale.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace strata {
namespace {

std::vector<std::string> Texts(const std::vector<Tick>& ticks) {
  std::vector<std::string> texts;
  for (const Tick& tick : ticks) texts.push_back(tick.text);
  return texts;
}

using Strings = std::vector<std::string>;

TEST_CASE("ticks are round numbers, written as short as they can be told apart", "[plot]") {
  CHECK(Texts(Ticks({0, 1}, 6, false)) == Strings{"0", "0.2", "0.4", "0.6", "0.8", "1.0"});
  CHECK(Texts(Ticks({0, 300000}, 4, false)) == Strings{"0", "100k", "200k", "300k"});
  CHECK(Texts(Ticks({0.4071, 0.5389}, 4, false)) == Strings{"0.45", "0.50"});
  CHECK(Texts(Ticks({-2, 2}, 5, false)) == Strings{"-2", "-1", "0", "1", "2"});
  CHECK(Texts(Ticks({0, 2e6}, 5, false)) == Strings{"0", "500k", "1M", "1.5M", "2M"});
  CHECK(Texts(Ticks({0, 4e-6}, 5, false)) == Strings{"0", "1e-6", "2e-6", "3e-6", "4e-6"});
}

TEST_CASE("ticks lie in their range, ascend, and are no more than asked for", "[plot]") {
  for (const bool log : {false, true}) {
    for (const Range range : {Range{1e-9, 1e9}, {0.3, 0.31}, {999.5, 1000.5}, {1, 1e300}, {5, 6}}) {
      for (int most = 2; most <= 12; ++most) {
        INFO(range.low << " to " << range.high << ", at most " << most << ", log " << log);
        const std::vector<Tick> ticks = Ticks(range, most, log);
        CHECK(ticks.size() <= static_cast<size_t>(most));
        for (size_t i = 0; i < ticks.size(); ++i) {
          CHECK(ticks[i].value >= range.low - 1e-6 * (range.high - range.low));
          CHECK(ticks[i].value <= range.high + 1e-6 * (range.high - range.low));
          if (i > 0) CHECK(ticks[i].value > ticks[i - 1].value);
          if (i > 0) CHECK(ticks[i].text != ticks[i - 1].text);
        }
      }
    }
  }
}

TEST_CASE("a logarithmic axis has powers of ten", "[plot]") {
  CHECK(Texts(Ticks({1, 1e4}, 6, true)) == Strings{"1", "10", "100", "1000", "10k"});
  CHECK(Texts(Ticks({1, 30}, 6, true)) == Strings{"1", "2", "5", "10", "20"});
  CHECK(Part({1, 100}, 10, true) == Approx(0.5));
  CHECK(Part({1, 101}, 51, false) == Approx(0.5));
}

TEST_CASE("a range is never empty", "[plot]") {
  for (const double value : {0.0, 1.0, -3.5, 1e-200, 1e300}) {
    const Range range = Widened({value, value}, 0.05, false);
    INFO(value);
    CHECK(range.low < value);
    CHECK(range.high > value);
    CHECK(std::isfinite(range.high - range.low));
  }
  const Range log = Widened({7, 7}, 0, true);
  CHECK(log.low > 0);
  CHECK(log.low < log.high);
}

TEST_CASE("times are told in the unit that fits", "[plot]") {
  CHECK(std::string(UnitOf(119).name) == "s");
  CHECK(std::string(UnitOf(121).name) == "min");
  CHECK(std::string(UnitOf(7201).name) == "h");
  CHECK(UnitOf(7201).seconds == 3600);
}

}  // namespace
}  // namespace strata
