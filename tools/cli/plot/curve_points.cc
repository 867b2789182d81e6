#include "tools/cli/plot/curve_points.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace strata {
namespace {

// The first, the least, the greatest and the last, in their order.
void KeepWhatShows(std::vector<CurvePoint>& points) {
  if (points.size() <= 4) return;
  const auto less = [](const CurvePoint& a, const CurvePoint& b) { return a.y < b.y; };
  const auto [least, greatest] = std::minmax_element(points.begin(), points.end(), less);
  const std::vector<CurvePoint> kept = {points.front(), *std::min(least, greatest),
                                        *std::max(least, greatest), points.back()};
  points = kept;
}

}  // namespace

double CurvePoints::Across(double x) const { return log_x_ ? std::log10(x) : x; }

void CurvePoints::Put(const CurvePoint& point) {
  const double across = Across(point.x);
  if (columns_.empty()) from_ = across;
  const double number = width_ > 0 ? std::floor((across - from_) / width_) : across;
  if (columns_.empty() || columns_.back().number != number) columns_.push_back({number, {}});
  columns_.back().points.push_back(point);
  KeepWhatShows(columns_.back().points);
}

void CurvePoints::Add(CurvePoint point) {
  while (!columns_.empty()) {
    std::vector<CurvePoint>& last = columns_.back().points;
    std::erase_if(last, [&](const CurvePoint& p) { return p.x >= point.x; });
    if (!last.empty()) break;
    columns_.pop_back();
  }
  Put(point);
  if (columns_.size() > kMostColumns) Widen();
}

void CurvePoints::Widen() {
  const std::vector<CurvePoint> all = points();
  // Half as many columns, and one more where the last point begins another.
  width_ = (Across(all.back().x) - Across(all.front().x)) / (kMostColumns / 2);
  columns_.clear();
  for (const CurvePoint& point : all) Put(point);
}

void CurvePoints::Clear() {
  columns_.clear();
  width_ = 0;
}

std::vector<CurvePoint> CurvePoints::points() const {
  std::vector<CurvePoint> all;
  for (const Column& column : columns_) {
    all.insert(all.end(), column.points.begin(), column.points.end());
  }
  return all;
}

}  // namespace strata
