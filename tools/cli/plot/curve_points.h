// The points of one curve, as many as can be told apart in a picture.
#ifndef STRATA_TOOLS_CLI_PLOT_CURVE_POINTS_H_
#define STRATA_TOOLS_CLI_PLOT_CURVE_POINTS_H_

#include <cstddef>
#include <vector>

namespace strata {

struct CurvePoint {
  double x = 0;
  double y = 0;

  bool operator==(const CurvePoint&) const = default;
};

// Takes points one after the other. While there are at most kMostColumns of different x, it keeps
// them all; beyond that it cuts the curve into columns of the same width, each narrower than a
// pixel, and keeps of each the first, the least, the greatest and the last point as they came. What
// it holds at any time: 4 x kMostColumns points. One thread.
class CurvePoints {
 public:
  static constexpr size_t kMostColumns = 8192;

  // `log_x`: columns are of the same width on a logarithmic axis.
  explicit CurvePoints(bool log_x) : log_x_(log_x) {}

  // A point whose x is not beyond the last one's takes the place of those from there on: a run that
  // went back trains them again. REQUIRES: both are finite; x > 0 where the axis is logarithmic.
  void Add(CurvePoint point);
  void Clear();

  // By ascending x.
  std::vector<CurvePoint> points() const;

 private:
  struct Column {
    double number = 0;
    std::vector<CurvePoint> points;
  };

  double Across(double x) const;
  // Appends to the last column, or to a new one.
  void Put(const CurvePoint& point);
  void Widen();

  const bool log_x_;
  double from_ = 0;   // of the first column, across
  double width_ = 0;  // 0: each x has a column of its own
  std::vector<Column> columns_;
};

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_PLOT_CURVE_POINTS_H_
