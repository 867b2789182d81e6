#include "tools/cli/plot/curve_points.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <vector>

namespace strata {
namespace {

using Points = std::vector<CurvePoint>;

TEST_CASE("points stay as they are while they are few", "[plot]") {
  CurvePoints points(false);
  for (const CurvePoint& p : Points{{1, 5}, {2, 4}, {4, 6}}) points.Add(p);
  CHECK(points.points() == Points{{1, 5}, {2, 4}, {4, 6}});
  points.Clear();
  CHECK(points.points().empty());
}

TEST_CASE("what is trained again takes the place of what was", "[plot]") {
  CurvePoints points(false);
  for (const CurvePoint& p : Points{{1, 5}, {2, 4}, {3, 3}, {2, 40}, {3, 30}, {3, 31}}) {
    points.Add(p);
  }
  CHECK(points.points() == Points{{1, 5}, {2, 40}, {3, 31}});
  points.Add({0.5, 9});
  CHECK(points.points() == Points{{0.5, 9}});
}

TEST_CASE("of many points those stay that show: ends and extremes", "[plot]") {
  for (const bool log : {false, true}) {
    INFO("log " << log);
    CurvePoints points(log);
    const int all = 1'000'000;
    for (int x = 1; x <= all; ++x) {
      const double y = x == 123'457 ? 50 : x == 765'431 ? -50 : std::sin(x * 1e-5);
      points.Add({static_cast<double>(x), y});
    }
    const Points kept = points.points();
    CHECK(kept.size() <= 4 * CurvePoints::kMostColumns);
    CHECK(kept.size() >= CurvePoints::kMostColumns / 4);
    CHECK(kept.front().x == 1);
    CHECK(kept.back().x == all);
    CHECK(std::count(kept.begin(), kept.end(), CurvePoint{123'457, 50}) == 1);
    CHECK(std::count(kept.begin(), kept.end(), CurvePoint{765'431, -50}) == 1);
    CHECK(std::is_sorted(kept.begin(), kept.end(),
                         [](const CurvePoint& a, const CurvePoint& b) { return a.x < b.x; }));
    // No gap is wider than a column can be: half of the columns are there, on the axis' scale.
    double widest = 0;
    for (size_t i = 1; i < kept.size(); ++i) {
      const double gap = log ? std::log10(kept[i].x / kept[i - 1].x) : kept[i].x - kept[i - 1].x;
      widest = std::max(widest, gap);
    }
    if (!log) CHECK(widest <= 4.0 * all / CurvePoints::kMostColumns);
  }
}

}  // namespace
}  // namespace strata
