#include "tools/cli/plot/chart.h"

#include <catch2/catch.hpp>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tools/cli/plot/curve_points.h"

namespace strata {
namespace {

size_t Count(absl::string_view text, absl::string_view part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != absl::string_view::npos; ++at) ++count;
  return count;
}

Chart TwoCurves() {
  Chart chart;
  chart.x_name = "examples";
  chart.y_name = "loss";
  chart.curves = {{"first", {{0, 1}, {10, 0.5}}}, {"second <b>", {{5, 2}, {10, 1}}}};
  return chart;
}

// Where the points of a curve lie.
std::vector<std::string> PolylineOf(const std::string& svg, size_t curve) {
  size_t at = 0;
  for (size_t i = 0; i <= curve; ++i) at = svg.find("<polyline", at) + 1;
  const size_t from = svg.find("points=\"", at) + 8;
  return absl::StrSplit(svg.substr(from, svg.find('"', from) - from), ' ');
}

TEST_CASE("a chart has axes, names, curves and a legend, and refers to nothing else", "[plot]") {
  const std::string svg = ChartSvg(TwoCurves());
  CHECK(absl::StartsWith(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" "));
  CHECK(absl::EndsWith(svg, "</svg>\n"));
  CHECK(Count(svg, "<polyline") == 2);
  CHECK(Count(svg, "<circle") == 4);  // few points are marked
  CHECK(absl::StrContains(svg, ">examples</text>"));
  CHECK(absl::StrContains(svg, ">loss</text>"));
  CHECK(absl::StrContains(svg, ">second &lt;b&gt;</text>"));
  CHECK(Count(svg, "<b>") == 0);
  CHECK(Count(svg, "http") == 1);  // the name space
  CHECK(Count(svg, "prefers-color-scheme:dark") == 1);
}

TEST_CASE("points lie where their values are", "[plot]") {
  Chart chart = TwoCurves();
  const std::vector<std::string> first = PolylineOf(ChartSvg(chart), 0);
  const std::vector<std::string> second = PolylineOf(ChartSvg(chart), 1);
  REQUIRE(first.size() == 2);
  REQUIRE(second.size() == 2);
  const auto at = [](const std::string& point) {
    const std::vector<std::string> xy = absl::StrSplit(point, ',');
    return CurvePoint{std::stod(xy.at(0)), std::stod(xy.at(1))};
  };
  CHECK(at(first[1]).x == at(second[1]).x);
  CHECK(at(first[0]).y == at(second[1]).y);  // both are 1
  CHECK(at(second[0]).x == Approx((at(first[0]).x + at(first[1]).x) / 2).margin(0.11));
  CHECK(at(second[0]).y < at(first[0]).y);  // more is higher
  CHECK(at(first[1]).y > at(first[0]).y);
}

TEST_CASE("seconds are written in the unit that fits", "[plot]") {
  Chart chart = TwoCurves();
  chart.x_is_seconds = true;
  CHECK(absl::StrContains(ChartSvg(chart), ">time (s)</text>"));
  chart.curves[0].points.push_back({36000, 0.25});
  CHECK(absl::StrContains(ChartSvg(chart), ">time (h)</text>"));
  CHECK(absl::StrContains(ChartSvg(chart), ">10</text>"));
}

TEST_CASE("every curve of the most there may be looks its own way", "[plot]") {
  Chart chart = TwoCurves();
  chart.curves.clear();
  for (size_t i = 0; i < Chart::kMostCurves; ++i) {
    chart.curves.push_back({absl::StrCat("run ", i), {{0, 1.0 * i}, {1, 2.0 * i}}});
  }
  const std::string svg = ChartSvg(chart);
  std::set<std::string> looks;
  for (size_t at = 0; (at = svg.find("<g class=\"", at)) != std::string::npos; ++at) {
    const std::string group = svg.substr(at, svg.find("</g>", at) - at);
    const size_t line = group.find("<polyline");
    if (line == std::string::npos) continue;
    const size_t points = group.find(" points", line);
    looks.insert(group.substr(0, group.find('>')) + group.substr(line, points - line));
  }
  CHECK(looks.size() == Chart::kMostCurves);
}

TEST_CASE("a curve without points is in the legend, and says so", "[plot]") {
  Chart chart = TwoCurves();
  chart.curves.push_back({"nothing yet", {}});
  const std::string svg = ChartSvg(chart);
  CHECK(Count(svg, "<polyline") == 2);
  CHECK(absl::StrContains(svg, "nothing yet (no points)"));
}

TEST_CASE("a legend without room makes the picture higher", "[plot]") {
  Chart chart = TwoCurves();
  chart.width = 320;
  chart.height = 240;
  chart.curves.clear();
  for (size_t i = 0; i < 40; ++i) {
    chart.curves.push_back({"/a/long/path/of/a/file/of/metrics.jsonl", {{0, 1}, {1, 2}}});
  }
  const std::string svg = ChartSvg(chart);
  const size_t from = svg.find("height=\"") + 8;
  CHECK(std::stoi(svg.substr(from)) > 40 * 19);
}

}  // namespace
}  // namespace strata
