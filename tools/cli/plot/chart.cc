#include "tools/cli/plot/chart.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/cli/plot/scale.h"
#include "tools/cli/plot/svg_text.h"

namespace strata {
namespace {

constexpr double kFont = 12, kTitleFont = 15;
constexpr double kRow = 19;           // of the legend
constexpr double kSample = 34;        // a legend's line, with the room behind it
constexpr double kLeastHeight = 120;  // of the area of the curves
constexpr size_t kFewPoints = 40;     // are marked

// Colours that people with each kind of colour blindness tell apart (Okabe and Ito, "Color
// Universal Design", 2008), without the yellow, which paper swallows; and the same, lighter, for a
// dark page.
constexpr const char* kLight[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                  "#b07c00", "#3fa0d8", "#555555"};
constexpr const char* kDark[] = {"#56b4e9", "#ff8c42", "#2bd1a0", "#eda3cb",
                                 "#f0c14b", "#9fd8ff", "#c8c8c8"};
// As many colours as no number of dashes divides: pairs of both repeat after 7 x 6.
constexpr const char* kDashes[] = {"", "8 3", "2 3", "10 3 2 3", "5 5", "12 3 2 3 2 3"};

std::string Number(double value) { return absl::StrFormat("%.1f", value); }

struct Entry {
  std::string text;
  double x = 0, y = 0;  // from the legend's corner
};

struct Layout {
  double width = 0, height = 0;
  double left = 0, top = 0, right = 0, bottom = 0;  // of the area of the curves
  double legend_top = 0;
  Range x, y;
  double x_unit = 1;  // what 1 on the axis is of a point's x
  std::vector<Tick> x_ticks, y_ticks;
  std::string x_name;
  std::vector<Entry> legend;
};

double WidestOf(const std::vector<Tick>& ticks) {
  double widest = 0;
  for (const Tick& tick : ticks) widest = std::max(widest, TextWidth(tick.text) * kFont);
  return widest;
}

void SetRanges(const Chart& chart, Layout& l) {
  bool first = true;
  for (const Curve& curve : chart.curves) {
    for (const CurvePoint& p : curve.points) {
      if (first) l.x = {p.x, p.x}, l.y = {p.y, p.y};
      first = false;
      l.x = {std::min(l.x.low, p.x), std::max(l.x.high, p.x)};
      l.y = {std::min(l.y.low, p.y), std::max(l.y.high, p.y)};
    }
  }
  l.x = Widened(l.x, 0, chart.log_x);
  l.y = Widened(l.y, 0.05, chart.log_y);
}

// The entries in rows, each as wide as its text. Returns the rows.
int SetLegend(const Chart& chart, double room, Layout& l) {
  double x = 0;
  int row = 0;
  for (const Curve& curve : chart.curves) {
    const absl::string_view without = curve.points.empty() ? " (no points)" : "";
    const double most = room / kFont - kSample / kFont - TextWidth(without);
    Entry entry{absl::StrCat(Shortened(curve.label, most), without)};
    const double width = kSample + TextWidth(entry.text) * kFont;
    if (x > 0 && x + width > room) {
      x = 0;
      ++row;
    }
    entry.x = x;
    entry.y = row * kRow;
    x += width + 20;
    l.legend.push_back(std::move(entry));
  }
  return row + 1;
}

void SetTimes(Layout& l) {
  const TimeUnit unit = UnitOf(l.x.high);
  l.x_name = absl::StrCat("time (", unit.name, ")");
  const Range range{l.x.low / unit.seconds, l.x.high / unit.seconds};
  l.x = range;
  l.x_unit = unit.seconds;
}

Layout LayOut(const Chart& chart) {
  Layout l;
  l.width = chart.width;
  l.x_name = chart.x_name;
  SetRanges(chart, l);
  if (chart.x_is_seconds) SetTimes(l);
  const int rows = SetLegend(chart, l.width - 32, l);
  l.top = chart.title.empty() ? 16 : 40;
  const double below = 18 + 22 + 10 + rows * kRow + 6;  // ticks, name, room, legend, edge
  l.height = std::max<double>(chart.height, l.top + kLeastHeight + below);
  l.bottom = l.height - below;
  l.legend_top = l.bottom + 18 + 22 + 10 + kRow / 2;
  const int y_most = std::clamp(static_cast<int>((l.bottom - l.top) / 40), 3, 10);
  l.y_ticks = Ticks(l.y, y_most, chart.log_y);
  l.left = 16 + kFont + 8 + WidestOf(l.y_ticks) + 8;
  // As many as leave room between their texts; half of the last one's lies beyond the axis.
  for (int most = 12; most >= 2; --most) {
    l.x_ticks = Ticks(l.x, most, chart.log_x);
    const double widest = WidestOf(l.x_ticks);
    l.right = l.width - std::max(16.0, widest / 2 + 4);
    bool fits = true;
    for (size_t i = 1; i < l.x_ticks.size(); ++i) {
      const double gap = Part(l.x, l.x_ticks[i].value, chart.log_x) -
                         Part(l.x, l.x_ticks[i - 1].value, chart.log_x);
      fits = fits && gap * (l.right - l.left) >= widest + 14;
    }
    if (fits) break;
  }
  return l;
}

std::string Style() {
  std::string light, dark;
  for (size_t i = 0; i < std::size(kLight); ++i) {
    absl::StrAppend(&light, ".k", i, "{color:", kLight[i], "}");
    absl::StrAppend(&dark, ".k", i, "{color:", kDark[i], "}");
  }
  return absl::StrCat(
      "<style>\n"
      "text{font-family:system-ui,sans-serif;font-size:",
      kFont, "px;fill:#222222}\n.h{font-size:", kTitleFont,
      "px;font-weight:bold}\n"
      ".b{fill:#ffffff}.g{stroke:#dddddd}.a{stroke:#666666}.g,.a{fill:none;stroke-width:1}\n"
      ".l{fill:none;stroke:currentColor;stroke-width:1.75;stroke-linejoin:round}\n"
      ".p{fill:currentColor}\n",
      light,
      "\n@media (prefers-color-scheme:dark){\n"
      "text{fill:#e6e6e6}.b{fill:#16181c}.g{stroke:#34383f}.a{stroke:#9a9fa8}\n",
      dark, "\n}\n</style>\n");
}

std::string Text(double x, double y, absl::string_view anchor, absl::string_view text,
                 absl::string_view more = "") {
  return absl::StrCat("<text x=\"", Number(x), "\" y=\"", Number(y), "\" text-anchor=\"", anchor,
                      "\"", more, ">", SvgText(text), "</text>\n");
}

std::string Line(double x1, double y1, double x2, double y2, absl::string_view attributes) {
  return absl::StrCat("<line x1=\"", Number(x1), "\" y1=\"", Number(y1), "\" x2=\"", Number(x2),
                      "\" y2=\"", Number(y2), "\" ", attributes, "/>\n");
}

std::string Axes(const Chart& chart, const Layout& l) {
  std::string out;
  for (const Tick& tick : l.y_ticks) {
    const double y = l.bottom - Part(l.y, tick.value, chart.log_y) * (l.bottom - l.top);
    absl::StrAppend(&out, Line(l.left, y, l.right, y, "class=\"g\""),
                    Text(l.left - 8, y + 4, "end", tick.text));
  }
  for (const Tick& tick : l.x_ticks) {
    const double x = l.left + Part(l.x, tick.value, chart.log_x) * (l.right - l.left);
    absl::StrAppend(&out, Line(x, l.top, x, l.bottom, "class=\"g\""),
                    Text(x, l.bottom + 18, "middle", tick.text));
  }
  absl::StrAppend(&out, "<path class=\"a\" d=\"M", Number(l.left), " ", Number(l.top), "V",
                  Number(l.bottom), "H", Number(l.right), "\"/>\n");
  const double middle = (l.top + l.bottom) / 2;
  absl::StrAppend(
      &out, Text((l.left + l.right) / 2, l.bottom + 18 + 20, "middle", l.x_name),
      Text(16 + kFont / 2, middle, "middle", Shortened(chart.y_name, (l.bottom - l.top) / kFont),
           absl::StrCat(" transform=\"rotate(-90 ", Number(16 + kFont / 2), " ", Number(middle),
                        ")\"")));
  if (!chart.title.empty()) {
    absl::StrAppend(
        &out, Text(l.width / 2, 25, "middle",
                   Shortened(chart.title, (l.width - 32) / (kTitleFont * 1.1)), " class=\"h\""));
  }
  return out;
}

std::string DashOf(size_t curve) {
  const absl::string_view dashes = kDashes[curve % std::size(kDashes)];
  return dashes.empty() ? "" : absl::StrCat(" stroke-dasharray=\"", dashes, "\"");
}

std::string CurveText(const Chart& chart, const Layout& l, size_t number) {
  const Curve& curve = chart.curves[number];
  if (curve.points.empty()) return "";
  std::string line, marks;
  for (const CurvePoint& p : curve.points) {
    const std::string x =
        Number(l.left + Part(l.x, p.x / l.x_unit, chart.log_x) * (l.right - l.left));
    const std::string y = Number(l.bottom - Part(l.y, p.y, chart.log_y) * (l.bottom - l.top));
    absl::StrAppend(&line, line.empty() ? "" : " ", x, ",", y);
    if (curve.points.size() > kFewPoints) continue;
    absl::StrAppend(&marks, "<circle class=\"p\" cx=\"", x, "\" cy=\"", y, "\" r=\"2.6\"/>\n");
  }
  return absl::StrCat("<g class=\"k", number % std::size(kLight), "\"><title>",
                      SvgText(curve.label), "</title>\n<polyline class=\"l\"", DashOf(number),
                      " points=\"", line, "\"/>\n", marks, "</g>\n");
}

std::string LegendText(const Chart& chart, const Layout& l) {
  std::string out;
  for (size_t i = 0; i < l.legend.size(); ++i) {
    const double x = 16 + l.legend[i].x, y = l.legend_top + l.legend[i].y;
    absl::StrAppend(&out, "<g class=\"k", i % std::size(kLight), "\"><title>",
                    SvgText(chart.curves[i].label), "</title>\n",
                    Line(x, y, x + kSample - 6, y, absl::StrCat("class=\"l\"", DashOf(i))),
                    Text(x + kSample, y + 4, "start", l.legend[i].text), "</g>\n");
  }
  return out;
}

}  // namespace

std::string ChartSvg(const Chart& chart) {
  const Layout l = LayOut(chart);
  const std::string name =
      chart.title.empty() ? absl::StrCat(chart.y_name, " by ", chart.x_name) : chart.title;
  const std::string size =
      absl::StrCat(static_cast<int64_t>(l.width), "\" height=\"", static_cast<int64_t>(l.height));
  std::string out =
      absl::StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", size, "\" viewBox=\"0 0 ",
                   static_cast<int64_t>(l.width), " ", static_cast<int64_t>(l.height),
                   "\" role=\"img\">\n<title>", SvgText(name), "</title>\n", Style());
  absl::StrAppend(&out, "<rect class=\"b\" width=\"", size, "\"/>\n", Axes(chart, l));
  for (size_t i = 0; i < chart.curves.size(); ++i) {
    absl::StrAppend(&out, CurveText(chart, l, i));
  }
  absl::StrAppend(&out, LegendText(chart, l), "</svg>\n");
  return out;
}

}  // namespace strata
