#include "tests/e2e/p3/covering.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <tuple>
#include <vector>

namespace strata::testing {
namespace {

using Pair = std::tuple<size_t, size_t, size_t, size_t>;

std::set<Pair> PairsOf(const std::vector<Row>& rows) {
  std::set<Pair> pairs;
  for (const Row& row : rows) {
    for (size_t a = 0; a < row.size(); ++a) {
      for (size_t b = a + 1; b < row.size(); ++b) pairs.emplace(a, row[a], b, row[b]);
    }
  }
  return pairs;
}

// Every valid row, found by trying all.
std::vector<Row> AllRows(const Axes& axes) { return ProductRows(axes, axes.sizes.size()); }

std::vector<Row> ByTrying(const Axes& axes) {
  std::vector<Row> rows = {{}};
  for (const size_t size : axes.sizes) {
    std::vector<Row> longer;
    for (const Row& row : rows) {
      for (size_t v = 0; v < size; ++v) {
        longer.push_back(row);
        longer.back().push_back(v);
      }
    }
    rows = longer;
  }
  std::vector<Row> valid;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(valid),
               [&](const Row& row) { return IsValid(axes, row); });
  return valid;
}

bool Always(size_t, size_t, size_t, size_t) { return true; }

// Value 1 of axis 0 wants value 2 of axis 1; value 0 of axis 2 forbids value 2 of axis 1. So value
// 1 of axis 0 and value 0 of axis 2 are never together, though nothing says so of the two.
bool Some(size_t a, size_t x, size_t b, size_t y) {
  if (a == 0 && b == 1 && x == 1) return y == 2;
  if (a == 1 && b == 2 && x == 2) return y != 0;
  return true;
}

TEST_CASE("pairwise rows have every pair that a valid row has", "[p3]") {
  const Axes axes = GENERATE(Axes{{1}, Always}, Axes{{2, 2}, Always}, Axes{{3, 3, 3, 3}, Always},
                             Axes{{5, 4, 3, 2, 2, 2}, Always}, Axes{{2, 3, 2, 3}, Some},
                             Axes{{3, 3, 4, 2, 2}, Some});
  const std::vector<Row> rows = PairwiseRows(axes);
  for (const Row& row : rows) CHECK(IsValid(axes, row));
  CHECK(PairsOf(rows) == PairsOf(ByTrying(axes)));
  CHECK(rows == PairwiseRows(axes));  // the same ones each time
}

TEST_CASE("pairwise rows are few", "[p3]") {
  // No fewer than the two longest axes' product; nine and a few more would do for 3^4.
  const size_t rows = PairwiseRows({{3, 3, 3, 3}, Always}).size();
  CHECK(rows >= 9);
  CHECK(rows <= 13);
  const size_t many = PairwiseRows({{8, 7, 3, 3, 3, 3, 2, 2, 2, 2}, Always}).size();
  CHECK(many >= 56);
  CHECK(many <= 70);
}

TEST_CASE("a pair that no valid row has is left out", "[p3]") {
  const std::set<Pair> pairs = PairsOf(PairwiseRows({{2, 3, 2, 3}, Some}));
  CHECK(pairs.count({0, 1, 1, 2}) == 1);
  CHECK(pairs.count({0, 1, 1, 0}) == 0);
  CHECK(pairs.count({0, 1, 2, 0}) == 0);
}

TEST_CASE("the product has each combination of the chosen axes, and every value of the rest",
          "[p3]") {
  const Axes axes = {{2, 3, 2, 3}, Some};
  CHECK(AllRows(axes) == ByTrying(axes));
  const std::vector<Row> rows = ProductRows(axes, 2);
  std::set<std::pair<size_t, size_t>> chosen, wanted;
  std::set<size_t> third, fourth;
  for (const Row& row : rows) {
    CHECK(IsValid(axes, row));
    CHECK(chosen.emplace(row[0], row[1]).second);
    third.insert(row[2]);
    fourth.insert(row[3]);
  }
  for (const Row& row : ByTrying(axes)) wanted.emplace(row[0], row[1]);
  CHECK(chosen == wanted);
  CHECK(third.size() == 2);
  CHECK(fourth.size() == 3);
}

}  // namespace
}  // namespace strata::testing
