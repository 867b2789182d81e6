#include "ops/nn/field_vectors.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

namespace strata::ops {
namespace {

FeaturePlace At(uint64_t row, uint32_t column, uint16_t dim, bool first = true, bool max = false) {
  return {row, column, dim, first, max};
}

// Two tables: rows of 2 floats (keys 0, 1) and of 3 (keys 2, 3). Example 0 has a field of the first
// at column 0, one of the second at 2 with two features; example 1 has none, then a feature that
// stands nowhere; example 2 has the second field alone, pooled by max.
struct Batch {
  const std::vector<float> rows = {1, 2, 3, 4, 10, 20, 30, 15, 10, 35};
  const std::vector<uint32_t> offsets = {0, 3, 4, 6};
  std::vector<FeaturePlace> places = {At(2, 0, 2),
                                      At(4, 2, 3),
                                      At(7, 2, 3, false),
                                      At(0, FeaturePlace::kNowhere, 2),
                                      At(4, 2, 3, true, true),
                                      At(7, 2, 3, false, true)};
  const std::vector<float> values = {2, 0.5f, -1, 1, 1, 1};
  const std::vector<uint32_t> example = {0, 0, 0, 1, 2, 2};
  std::vector<float> matrix = std::vector<float>(3 * 6, 77);
  std::vector<uint32_t> from = std::vector<uint32_t>(3 * 6, 99);

  VectorExamples x() const { return {offsets.data(), places.data(), values.data(), rows.data()}; }
};

TEST_CASE("vectors of several widths stand side by side, pooled", "[field_vectors]") {
  Batch b;
  GatherVectors(b.x(), 0, 3, 5, {b.matrix.data(), 6, b.from.data()});
  CHECK(b.matrix == std::vector<float>{6, 8, -10, 0, -20, 77,  //
                                       0, 0, 0, 0, 0, 77,      //
                                       0, 0, 15, 20, 35, 77});
  CHECK(std::vector<uint32_t>(b.from.begin() + 14, b.from.begin() + 17) ==
        std::vector<uint32_t>{5, 4, 5});
}

TEST_CASE("each example's row is as wide as it needs", "[field_vectors]") {
  Batch even, b;
  GatherVectors(even.x(), 0, 3, 5, {even.matrix.data(), 6, even.from.data()});
  const std::vector<size_t> starts = {2, 8, 13};
  GatherVectors(b.x(), 0, 3, 5, {b.matrix.data(), 0, b.from.data(), starts.data()});
  for (size_t i = 0; i < 3; ++i) {
    const float* const row = even.matrix.data() + 6 * i;
    CHECK(std::equal(row, row + 5, b.matrix.data() + starts[i]));
  }
  for (const size_t untouched : {0, 1, 7}) CHECK(b.matrix[untouched] == 77);
  // Gradients stand where the vectors do.
  std::vector<float> gradient(18), moved(18);
  for (size_t i = 0; i < 3; ++i) {
    for (size_t d = 0; d < 5; ++d) {
      gradient[6 * i + d] = moved[starts[i] + d] = static_cast<float>(10 * i + d + 1);
    }
  }
  const std::vector<uint32_t> begins = {0, 2, 4}, of_second = {1, 4, 2, 5};
  const KeyOccurrences keys = {begins.data(), of_second.data(), 0, 2};
  std::vector<float> expected(6), out(6);
  VectorGradients(even.x(), {gradient.data(), 6, even.from.data()}, even.example.data(), keys, 3,
                  expected.data());
  VectorGradients(b.x(), {moved.data(), 0, b.from.data(), starts.data()}, b.example.data(), keys, 3,
                  out.data());
  CHECK(out == expected);
}

TEST_CASE("a block of examples writes its own rows", "[field_vectors]") {
  Batch b;
  GatherVectors(b.x(), 1, 2, 5, {b.matrix.data(), 6, b.from.data()});
  CHECK(b.matrix ==
        std::vector<float>{77, 77, 77, 77, 77, 77, 0, 0, 0, 0, 0, 77, 77, 77, 77, 77, 77, 77});
}

TEST_CASE("gradients go back to the rows that gave the values", "[field_vectors]") {
  Batch b;
  GatherVectors(b.x(), 0, 3, 5, {b.matrix.data(), 6, b.from.data()});
  std::vector<float> gradient = {1, 2, 3, 4, 5,  0,  //
                                 6, 6, 6, 6, 6,  0,  //
                                 7, 7, 8, 9, 10, 0};
  const VectorMatrix by = {gradient.data(), 6, b.from.data()};
  // Key 0 is feature 3, key 1 is feature 0: of the first table.
  const std::vector<uint32_t> first = {0, 1, 2}, occurrences = {3, 0};
  std::vector<float> out(4, 77);
  VectorGradients(b.x(), by, b.example.data(), {first.data(), occurrences.data(), 0, 2}, 2,
                  out.data());
  CHECK(out == std::vector<float>{0, 0, 2, 4});
  // Of the second, key 0 is features 1 and 4, key 1 features 2 and 5.
  const std::vector<uint32_t> second = {0, 2, 4}, of_second = {1, 4, 2, 5};
  std::vector<float> wide(6, 77);
  VectorGradients(b.x(), by, b.example.data(), {second.data(), of_second.data(), 0, 2}, 3,
                  wide.data());
  CHECK(wide == std::vector<float>{1.5f, 2 + 9, 2.5f, -3 + 8, -4, -5 + 10});
}

TEST_CASE("the first of the greatest has the gradient, and a NaN that comes first stays",
          "[field_vectors]") {
  const std::vector<float> rows = {NAN, 5, 5};
  const std::vector<uint32_t> offsets = {0, 2, 4};
  const std::vector<FeaturePlace> places = {At(0, 0, 1, true, true), At(1, 0, 1, false, true),
                                            At(1, 0, 1, true, true), At(2, 0, 1, false, true)};
  std::vector<float> matrix(2);
  std::vector<uint32_t> from(2);
  GatherVectors({offsets.data(), places.data(), nullptr, rows.data()}, 0, 2, 1,
                {matrix.data(), 1, from.data()});
  CHECK(std::isnan(matrix[0]));
  CHECK(matrix[1] == 5);
  CHECK(from == std::vector<uint32_t>{0, 2});
}

}  // namespace
}  // namespace strata::ops
