// Which rows of a table of axes a test runs: few rows in which every two values meet that may, or
// every row there is.
#ifndef STRATA_TESTS_E2E_P3_COVERING_H_
#define STRATA_TESTS_E2E_P3_COVERING_H_

#include <cstddef>
#include <functional>
#include <vector>

namespace strata::testing {

// One value of each axis, as its index there.
using Row = std::vector<size_t>;

struct Axes {
  std::vector<size_t> sizes;  // values of each axis, >= 1
  // Whether value `x` of axis `a` and value `y` of axis `b` may meet; asked with a < b.
  std::function<bool(size_t a, size_t x, size_t b, size_t y)> may_meet;
};

// Whether every two values of the row may meet.
bool IsValid(const Axes& axes, const Row& row);

// Valid rows such that every two values that are together in any valid row are together in one of
// these. Greedy: each row is begun with a pair that no row has yet and filled with the values that
// bring the most new pairs. A pure function of the axes.
std::vector<Row> PairwiseRows(const Axes& axes);

// A valid row for every combination of values of the first `chosen` axes that has one. The other
// axes take turns: of each, the value that was used least so far. A pure function of its arguments.
std::vector<Row> ProductRows(const Axes& axes, size_t chosen);

}  // namespace strata::testing

#endif  // STRATA_TESTS_E2E_P3_COVERING_H_
