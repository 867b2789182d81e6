#include "tests/e2e/p3/covering.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>

namespace strata::testing {
namespace {

// An axis without a value yet.
constexpr size_t kOpen = SIZE_MAX;

bool Meet(const Axes& axes, size_t a, size_t x, size_t b, size_t y) {
  return a < b ? axes.may_meet(a, x, b, y) : axes.may_meet(b, y, a, x);
}

bool Fits(const Axes& axes, const Row& row, size_t axis, size_t value) {
  for (size_t b = 0; b < row.size(); ++b) {
    if (b == axis || row[b] == kOpen) continue;
    if (!Meet(axes, axis, value, b, row[b])) return false;
  }
  return true;
}

// How good a value is for an axis of a row that is being filled.
using Worth = std::function<int64_t(const Row& row, size_t axis, size_t value)>;

// Fills the open axes from `axis` on, each with the worthiest value with which the rest can be
// filled; false: there is none.
bool Fill(const Axes& axes, const Worth& worth, size_t axis, Row& row) {
  while (axis < row.size() && row[axis] != kOpen) ++axis;
  if (axis == row.size()) return true;
  std::vector<size_t> values(axes.sizes[axis]);
  std::iota(values.begin(), values.end(), size_t{0});
  std::vector<int64_t> worths;
  for (const size_t v : values) worths.push_back(worth(row, axis, v));
  std::stable_sort(values.begin(), values.end(),
                   [&](size_t x, size_t y) { return worths[x] > worths[y]; });
  for (const size_t v : values) {
    if (!Fits(axes, row, axis, v)) continue;
    row[axis] = v;
    if (Fill(axes, worth, axis + 1, row)) return true;
  }
  row[axis] = kOpen;
  return false;
}

// Which pairs of values some row has.
class Pairs {
 public:
  explicit Pairs(const Axes& axes) : sizes_(axes.sizes) {
    for (const size_t size : sizes_) {
      first_.push_back(values_);
      values_ += size;
    }
    seen_.resize(values_ * values_);
  }
  bool Seen(size_t a, size_t x, size_t b, size_t y) const {
    return seen_[(first_[a] + x) * values_ + first_[b] + y];
  }
  void See(size_t a, size_t x, size_t b, size_t y) {
    seen_[(first_[a] + x) * values_ + first_[b] + y] = true;
    seen_[(first_[b] + y) * values_ + first_[a] + x] = true;
  }
  void SeeAll(const Row& row) {
    for (size_t a = 0; a < row.size(); ++a) {
      for (size_t b = a + 1; b < row.size(); ++b) See(a, row[a], b, row[b]);
    }
  }
  // Of the row's values, how many have not met `value` of `axis`.
  int64_t New(const Row& row, size_t axis, size_t value) const {
    int64_t count = 0;
    for (size_t b = 0; b < row.size(); ++b) {
      if (b != axis && row[b] != kOpen) count += !Seen(axis, value, b, row[b]);
    }
    return count;
  }

 private:
  const std::vector<size_t> sizes_;
  std::vector<size_t> first_;
  size_t values_ = 0;
  std::vector<bool> seen_;
};

// How often each value was used.
class Uses {
 public:
  explicit Uses(const Axes& axes) {
    for (const size_t size : axes.sizes) counts_.emplace_back(size);
  }
  void Count(const Row& row) {
    for (size_t a = 0; a < row.size(); ++a) ++counts_[a][row[a]];
  }
  int64_t of(size_t axis, size_t value) const { return counts_[axis][value]; }

 private:
  std::vector<std::vector<int64_t>> counts_;
};

}  // namespace

bool IsValid(const Axes& axes, const Row& row) {
  for (size_t a = 0; a < row.size(); ++a) {
    if (!Fits(axes, row, a, row[a])) return false;
  }
  return true;
}

std::vector<Row> PairwiseRows(const Axes& axes) {
  const size_t n = axes.sizes.size();
  std::vector<Row> rows;
  Pairs pairs(axes);
  Uses uses(axes);
  // New pairs first; among equals what was used least, so that rows differ.
  const Worth worth = [&](const Row& row, size_t axis, size_t value) {
    return (pairs.New(row, axis, value) << 32) - uses.of(axis, value);
  };
  const auto add_row_with = [&](size_t a, size_t x, size_t b, size_t y) {
    Row row(n, kOpen);
    row[a] = x;
    row[b] = y;
    pairs.See(a, x, b, y);  // also where no valid row has it
    if (!Meet(axes, a, x, b, y) || !Fill(axes, worth, 0, row)) return;
    pairs.SeeAll(row);
    uses.Count(row);
    rows.push_back(std::move(row));
  };
  for (size_t a = 0; a < n; ++a) {
    for (size_t b = a + 1; b < n; ++b) {
      for (size_t x = 0; x < axes.sizes[a]; ++x) {
        for (size_t y = 0; y < axes.sizes[b]; ++y) {
          if (!pairs.Seen(a, x, b, y)) add_row_with(a, x, b, y);
        }
      }
    }
  }
  return rows;
}

std::vector<Row> ProductRows(const Axes& axes, size_t chosen) {
  const size_t n = axes.sizes.size();
  std::vector<Row> rows;
  Uses uses(axes);
  const Worth worth = [&](const Row&, size_t axis, size_t value) { return -uses.of(axis, value); };
  Row row(n, kOpen);
  std::fill(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(chosen), 0);
  while (true) {
    Row whole = row;
    bool fits = true;
    for (size_t a = 0; a < chosen; ++a) fits = fits && Fits(axes, row, a, row[a]);
    if (fits && Fill(axes, worth, chosen, whole)) {
      uses.Count(whole);
      rows.push_back(std::move(whole));
    }
    size_t axis = chosen;
    while (axis > 0 && ++row[axis - 1] == axes.sizes[axis - 1]) row[--axis] = 0;
    if (axis == 0) return rows;
  }
}

}  // namespace strata::testing
