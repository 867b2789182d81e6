// Curves as an SVG that needs nothing else: axes, a legend, colours for light and for dark.
#ifndef STRATA_TOOLS_CLI_PLOT_CHART_H_
#define STRATA_TOOLS_CLI_PLOT_CHART_H_

#include <cstddef>
#include <string>
#include <vector>

#include "tools/cli/plot/curve_points.h"

namespace strata {

struct Curve {
  std::string label;
  std::vector<CurvePoint> points;  // by ascending x; none: it is in the legend alone
};

struct Chart {
  // Each of so many curves has a colour and dashes that no other has both of.
  static constexpr size_t kMostCurves = 42;

  std::string title = {};  // "": none
  std::string x_name = {}, y_name = {};
  bool x_is_seconds = false;  // written in s, min or h
  bool log_x = false, log_y = false;
  int width = 800, height = 480;  // a legend for which this is too low makes it higher
  std::vector<Curve> curves = {};
};

// REQUIRES: one to kMostCurves curves, at least one of them with a point; values are finite, at
// most 1e300 from 0, and above 0 on a logarithmic axis.
std::string ChartSvg(const Chart& chart);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_PLOT_CHART_H_
