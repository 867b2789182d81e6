// Scatter against a plain loop.
#include "ops/cuda/rows/scatter.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <utility>
#include <vector>

#include "ops/cuda/kernel/row_block.h"
#include "tests/ops/cuda/api/test_apis.h"

namespace strata::ops::gpu {
namespace {

using testing::Apis;
using testing::DeviceVector;
using testing::Differences;
using testing::Random;
using testing::TestApi;

constexpr uint32_t kTableRows = 613;
constexpr float kOld = 7.0f;

// The first n of 0 .. kTableRows - 1, shuffled.
std::vector<uint32_t> Shuffled(Random& random, uint32_t n) {
  std::vector<uint32_t> rows(kTableRows);
  for (uint32_t i = 0; i < kTableRows; ++i) rows[i] = i;
  for (uint32_t i = kTableRows - 1; i > 0; --i) std::swap(rows[i], rows[random.Below(i + 1)]);
  rows.resize(n);
  return rows;
}

// Rows of `dim` floats into a table of `stride`, both `offset` floats behind an aligned place.
void Check(TestApi& test, uint32_t dim, uint32_t stride, uint32_t offset) {
  Random random(dim * 31 + stride + offset);
  constexpr uint32_t n = 501;
  const std::vector<uint32_t> row_of = Shuffled(random, n);
  const std::vector<float> rows = random.Floats(offset + n * dim);
  std::vector<float> want(offset + kTableRows * stride, kOld);
  for (uint32_t i = 0; i < n; ++i) {
    for (uint32_t d = 0; d < dim; ++d) {
      want[offset + row_of[i] * stride + d] = rows[offset + i * dim + d];
    }
  }
  DeviceVector<float> from(test, rows), table(test, want.size(), kOld);
  DeviceVector<uint32_t> to(test, row_of);
  const ScatterArguments arguments{.rows = from.get() + offset,
                                   .row_of = to.get(),
                                   .count = {nullptr, n},
                                   .dim = dim,
                                   .table = {table.get() + offset, stride}};
  REQUIRE(Scatter(*test.api, arguments, test.stream.get()).ok());
  INFO(test.name << ", dim " << dim << ", stride " << stride << ", offset " << offset);
  CHECK(Differences(table.Get(), want) == 0);
}

TEST_CASE("rows go to their places, and nothing else changes", "[ops][cuda]") {
  for (TestApi& test : Apis()) {
    for (const uint32_t dim : {1u, 2u, 3u, 4u, 5u, 8u, 9u, 16u, 63u, 64u, 128u, 201u}) {
      for (const uint32_t more : {0u, 1u, 4u, 7u}) {
        for (const uint32_t offset : {0u, 1u, 4u}) Check(test, dim, dim + more, offset);
      }
    }
  }
}

TEST_CASE("rows beyond the count stay where they are", "[ops][cuda]") {
  for (TestApi& test : Apis()) {
    INFO(test.name);
    DeviceVector<float> from(test, std::vector<float>{1, 2, 3, 4, 5, 6});
    DeviceVector<uint32_t> to(test, std::vector<uint32_t>{2, 0, 1}), count(test, 1, 2u);
    DeviceVector<float> table(test, 6, kOld);
    ScatterArguments arguments{.rows = from.get(),
                               .row_of = to.get(),
                               .count = {count.get(), 3},
                               .dim = 2,
                               .table = {table.get(), 2}};
    REQUIRE(Scatter(*test.api, arguments, test.stream.get()).ok());
    CHECK(table.Get() == std::vector<float>{3, 4, kOld, kOld, 1, 2});
    count.Set({0});
    DeviceVector<float> untouched(test, 6, kOld);
    arguments.table.base = untouched.get();
    REQUIRE(Scatter(*test.api, arguments, test.stream.get()).ok());
    CHECK(untouched.Get() == std::vector<float>(6, kOld));
  }
}

}  // namespace
}  // namespace strata::ops::gpu
