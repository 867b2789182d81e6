// Rows put into their places, against a plain loop.
#include "ops/cuda/scatter.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "tests/ops/cuda/test_apis.h"

namespace strata::ops::gpu {
namespace {

using testing::Apis;
using testing::DeviceVector;
using testing::Differences;
using testing::Random;
using testing::TestApi;

// Rows of `dim` floats into a table of 300 rows `stride` apart; 200 are given, 180 counted.
void Check(TestApi& test, uint32_t dim, size_t stride) {
  constexpr uint32_t kTable = 300, kGiven = 200, kCounted = 180;
  Random random(dim);
  const std::vector<float> rows = random.Floats(kGiven * dim);
  std::vector<float> want = random.Floats(kTable * stride);
  std::vector<uint32_t> row_of;
  for (uint32_t r = 0; r < kTable; ++r) row_of.push_back(r);
  for (uint32_t r = kTable; r-- > 1;) std::swap(row_of[r], row_of[random.Below(r + 1)]);
  row_of.resize(kGiven);
  const DeviceVector<float> from(test, rows), table(test, want);
  const DeviceVector<uint32_t> to(test, row_of);
  for (uint32_t i = 0; i < kCounted; ++i) {
    std::copy_n(&rows[i * dim], dim, &want[row_of[i] * stride]);
  }
  const DeviceVector<uint32_t> counted(test, 1, kCounted);
  const Count count = {counted.get(), kGiven};
  REQUIRE(Scatter(*test.api, {from.get(), to.get(), count, dim, {table.get(), stride}},
                  test.stream.get())
              .ok());
  INFO(test.name << ", dim " << dim << ", stride " << stride);
  CHECK(Differences(table.Get(), want) == 0);
}

TEST_CASE("rows go to their places", "[ops][cuda]") {
  for (TestApi& test : Apis()) {
    for (const uint32_t dim : {1u, 3u, 4u, 16u, 17u, 128u}) {
      Check(test, dim, dim);
      Check(test, dim, dim + 5);
      Check(test, dim, (dim + 3) / 4 * 4 + 4);
    }
  }
}

}  // namespace
}  // namespace strata::ops::gpu
