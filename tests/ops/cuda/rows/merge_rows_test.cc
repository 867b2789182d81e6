// Sums of two lists of rows against the host's, to the bit.
#include "ops/cuda/rows/merge_rows.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "ops/row_sum.h"
#include "tests/ops/cuda/api/test_apis.h"

namespace strata::ops::gpu {
namespace {

using testing::Apis;
using testing::DeviceVector;
using testing::Differences;
using testing::Random;
using testing::TestApi;

struct Rows {
  std::vector<uint64_t> positions;
  std::vector<float> values;
  SparseRows view() const { return {positions.data(), values.data(), positions.size()}; }
};

// Each of 0 .. n - 1 with a chance of two in three. Some values are -0, and some add up to it.
Rows Some(Random& random, uint32_t n, uint32_t dim) {
  Rows rows;
  for (uint64_t p = 0; p < n; ++p) {
    if (random.Below(3) == 0) continue;
    rows.positions.push_back(p);
    for (uint32_t d = 0; d < dim; ++d) {
      rows.values.push_back(random.Below(8) == 0 ? -0.0f : random.Float());
    }
  }
  return rows;
}

// By position of the union: its index in `of`, or kNoRow.
std::vector<uint32_t> PlacesIn(const Rows& of, const std::vector<uint64_t>& all) {
  std::vector<uint32_t> places;
  size_t at = 0;
  for (const uint64_t p : all) {
    const bool here = at < of.positions.size() && of.positions[at] == p;
    places.push_back(here ? static_cast<uint32_t>(at++) : kNoRow);
  }
  return places;
}

TEST_CASE("two lists of rows are added", "[ops][cuda][exact]") {
  for (TestApi& test : Apis()) {
    for (const uint32_t dim : {1, 3, 4, 17, 64, 128}) {
      Random random(dim);
      const Rows left = Some(random, 500, dim), right = Some(random, 500, dim);
      std::vector<uint64_t> all(left.positions.size() + right.positions.size());
      std::vector<float> want(all.size() * dim);
      all.resize(MergeRowSums(left.view(), right.view(), dim, all.data(), want.data()));
      want.resize(all.size() * dim);
      const DeviceVector<float> l(test, left.values), r(test, right.values);
      const DeviceVector<uint32_t> left_of(test, PlacesIn(left, all));
      const DeviceVector<uint32_t> right_of(test, PlacesIn(right, all));
      const DeviceVector<float> out(test, want.size() + dim, 7.0f);
      const auto n = static_cast<uint32_t>(all.size());
      REQUIRE(
          MergeRows(*test.api,
                    {l.get(), r.get(), left_of.get(), right_of.get(), {nullptr, n}, dim, out.get()},
                    test.stream.get())
              .ok());
      std::vector<float> got = out.Get();
      INFO(test.name << ", dim " << dim);
      CHECK(std::vector<float>(got.begin() + want.size(), got.end()) ==
            std::vector<float>(dim, 7.0f));  // nothing beyond
      got.resize(want.size());
      CHECK(Differences(got, want) == 0);
    }
  }
}

}  // namespace
}  // namespace strata::ops::gpu
