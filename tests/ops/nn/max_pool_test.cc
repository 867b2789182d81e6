#include "ops/nn/max_pool.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <vector>

#include "ops/nn/sparse_examples.h"

namespace strata::ops {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Features 0 .. 3 with rows 2, 0, 2, 1 of three floats.
struct Examples {
  std::vector<float> rows = {1, 5, -3, 2, 5, -4, 1, 0, -2};
  std::vector<uint32_t> row = {2, 0, 2, 1};

  SparseExamples view() const {
    SparseExamples x;
    x.rows = rows.data();
    x.row = row.data();
    x.stride = 3;
    return x;
  }
};

TEST_CASE("the greatest of each element, of the first feature that has it", "[nn]") {
  const Examples examples;
  std::vector<float> out(3);
  std::vector<uint32_t> from(3);
  MaxPoolRow(examples.view(), {0, 4}, out.data(), from.data());
  CHECK(out == std::vector<float>{2, 5, -2});
  CHECK(from == std::vector<uint32_t>{3, 1, 0});
  std::vector<float> again(3);
  MaxPoolRow(examples.view(), {0, 4}, again.data(), nullptr);
  CHECK(again == out);
  MaxPoolRow(examples.view(), {2, 3}, out.data(), from.data());
  CHECK(out == std::vector<float>{1, 0, -2});
  CHECK(from == std::vector<uint32_t>{2, 2, 2});
}

TEST_CASE("what is no number is kept as the first alone", "[nn]") {
  Examples examples;
  examples.rows[0] = kNan;  // of feature 1
  std::vector<float> out(3);
  std::vector<uint32_t> from(3);
  MaxPoolRow(examples.view(), {0, 2}, out.data(), from.data());
  CHECK(out[0] == 1);
  CHECK(from[0] == 0);
  MaxPoolRow(examples.view(), {1, 4}, out.data(), from.data());
  CHECK(out[0] != out[0]);
  CHECK(from[0] == 1);
}

TEST_CASE("a gradient goes to the feature that gave the element", "[nn]") {
  const Examples examples;
  const std::vector<uint32_t> from = {3, 1, 1};
  const std::vector<float> gradient = {7, 8, 9};
  std::vector<float> out(9, -1.0f);
  MaxPoolGradients(examples.view(), {1, 4}, from.data(), gradient.data(), out.data());
  CHECK(out == std::vector<float>{0, 8, 9, 0, 0, 0, 7, 0, 0});
}

}  // namespace
}  // namespace strata::ops
