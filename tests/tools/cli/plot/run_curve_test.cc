#include "tools/cli/plot/run_curve.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/cli/plot/curve_points.h"

namespace strata {
namespace {

using Points = std::vector<CurvePoint>;

std::string Line(int step, int examples, int ms, double loss) {
  return absl::StrCat(R"({"step": )", step, R"(, "examples": )", examples, R"(, "unixMs": )", ms,
                      R"(, "loss": )", loss, "}");
}

Points PointsOf(const RunCurveOptions& options, const std::vector<std::string>& lines) {
  RunCurve curve(options);
  for (const std::string& line : lines) curve.AddLine(line, true);
  return curve.points();
}

TEST_CASE("a run's lines by step, by examples and by time", "[plot]") {
  const std::vector<std::string> lines = {Line(10, 100, 5000, 3), Line(20, 200, 5500, 2),
                                          Line(30, 300, 7000, 1)};
  CHECK(PointsOf({PlotX::kStep, "loss"}, lines) == Points{{10, 3}, {20, 2}, {30, 1}});
  CHECK(PointsOf({PlotX::kExamples, "loss"}, lines) == Points{{100, 3}, {200, 2}, {300, 1}});
  CHECK(PointsOf({PlotX::kTime, "loss"}, lines) == Points{{0, 3}, {0.5, 2}, {2, 1}});
}

TEST_CASE("a run that went back: steps are drawn as they were last, time goes on", "[plot]") {
  const std::vector<std::string> lines = {Line(10, 100, 1000, 9), Line(20, 200, 2000, 8),
                                          Line(30, 300, 3000, 7), Line(20, 200, 9000, 6),
                                          Line(30, 300, 10000, 5)};
  CHECK(PointsOf({PlotX::kStep, "loss"}, lines) == Points{{10, 9}, {20, 6}, {30, 5}});
  CHECK(PointsOf({PlotX::kExamples, "loss"}, lines) == Points{{100, 9}, {200, 6}, {300, 5}});
  CHECK(PointsOf({PlotX::kTime, "loss"}, lines) == Points{{0, 9}, {1, 8}, {2, 7}, {8, 6}, {9, 5}});
  RunCurve curve({PlotX::kStep, "loss"});
  for (const std::string& line : lines) curve.AddLine(line, true);
  CHECK(curve.back().lines == 1);
  CHECK(curve.back().first == 4);
  CHECK(curve.anew().lines == 0);
}

TEST_CASE("another run in the same file takes the place of the one before", "[plot]") {
  RunCurve curve({PlotX::kTime, "loss"});
  for (const std::string& line : {Line(10, 100, 1000, 9), Line(20, 200, 2000, 8),
                                  Line(10, 100, 50000, 7), Line(20, 200, 51000, 6)}) {
    curve.AddLine(line, true);
  }
  CHECK(curve.points() == Points{{0, 7}, {1, 6}});
  CHECK(curve.anew().lines == 1);
  CHECK(curve.anew().first == 3);
}

TEST_CASE("a clock that was set back stands for a moment", "[plot]") {
  CHECK(PointsOf({PlotX::kTime, "loss"}, {Line(1, 1, 10000, 3), Line(2, 2, 11000, 2),
                                          Line(3, 3, 5000, 1), Line(4, 4, 6000, 0)}) ==
        Points{{0, 3}, {1, 1}, {2, 0}});
}

TEST_CASE("lines that cannot be drawn are counted, the others are", "[plot]") {
  RunCurve curve({PlotX::kStep, "loss"});
  curve.AddLine(Line(1, 1, 1, 0.5), true);
  curve.AddLine("no JSON", true);
  curve.AddLine(R"({"step": 2, "loss": null})", true);
  curve.AddLine(R"({"step": 3})", true);
  curve.AddLine(R"({"step": 4, "loss": 1e301})", true);
  curve.AddLine(Line(5, 1, 1, 0.25), true);
  curve.AddLine(R"({"step": 6, "lo)", false);  // is being written
  CHECK(curve.points() == Points{{1, 0.5}, {5, 0.25}});
  CHECK(curve.lines() == 6);
  CHECK(curve.damaged().lines == 1);
  CHECK(curve.damaged().first == 2);
  CHECK(curve.without_number().first == 3);
  CHECK(curve.not_drawable().first == 5);
}

TEST_CASE("a logarithmic axis has nothing at and below 0", "[plot]") {
  RunCurve curve({PlotX::kStep, "loss", false, true});
  curve.AddLine(Line(1, 1, 1, 0), true);
  curve.AddLine(Line(2, 1, 1, 2), true);
  CHECK(curve.points() == Points{{2, 2}});
  CHECK(curve.not_drawable().lines == 1);
}

TEST_CASE("a member of a member has a name with points", "[plot]") {
  RunCurve curve({PlotX::kStep, "evalTasks.click.auc"});
  curve.AddLine(R"({"step": 1, "evalTasks": {"click": {"auc": 0.75, "loss": null}}, "x": "text"})",
                true);
  CHECK(curve.points() == Points{{1, 0.75}});
  CHECK(curve.names() ==
        std::set<std::string>{"step", "evalTasks.click.auc", "evalTasks.click.loss"});
}

}  // namespace
}  // namespace strata
