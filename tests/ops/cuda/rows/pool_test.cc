// Gather and pool against PoolRows of ops/nn/embedding.h and against its own definition.
#include "ops/cuda/rows/pool.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "ops/cuda/kernel/row_block.h"
#include "ops/nn/embedding.h"
#include "ops/nn/embedding_types.h"
#include "ops/nn/sparse_examples.h"
#include "tests/ops/cuda/api/test_apis.h"

namespace strata::ops::gpu {
namespace {

using testing::Apis;
using testing::DeviceVector;
using testing::Differences;
using testing::Random;
using testing::TestApi;

struct Bags {
  uint32_t dim;
  std::vector<uint32_t> first{0}, rows;
  std::vector<float> values;
  std::vector<float> table;
  static constexpr uint32_t kTableRows = 97;

  // fixed: of that many features each; 0: of 0 to 9 (the host's PoolRows has no empty run).
  Bags(uint32_t dim, uint32_t fixed, uint32_t least) : dim(dim) {
    Random random(dim + fixed);
    table = random.Floats(kTableRows * dim);
    for (uint32_t b = 0; b < 301; ++b) {
      const uint32_t size = fixed != 0 ? fixed : least + random.Below(10);
      for (uint32_t i = 0; i < size; ++i) rows.push_back(random.Below(kTableRows));
      first.push_back(static_cast<uint32_t>(rows.size()));
    }
    values = random.Floats(rows.size());
  }
  uint32_t bags() const { return static_cast<uint32_t>(first.size() - 1); }
};

std::vector<float> OnHost(const Bags& bags, bool with_values) {
  SparseExamples x;
  x.row = bags.rows.data();
  x.values = with_values ? bags.values.data() : nullptr;
  x.rows = bags.table.data();
  x.stride = bags.dim;
  FieldRuns runs;
  runs.first = bags.first.data();
  std::vector<float> out(bags.bags() * bags.dim);
  PoolRows(x, runs, 0, bags.bags(), out.data());
  return out;
}

std::vector<float> OnDevice(TestApi& test, const Bags& bags, bool with_values, uint32_t fixed,
                            Pooling pooling) {
  DeviceVector<float> table(test, bags.table), values(test, bags.values);
  DeviceVector<uint32_t> rows(test, bags.rows), first(test, bags.first);
  DeviceVector<float> out(test, bags.bags() * bags.dim, 5.0f);
  PoolArguments a;
  a.table = {table.get(), bags.dim};
  a.dim = bags.dim;
  a.row_of = rows.get();
  a.values = with_values ? values.get() : nullptr;
  a.first = fixed != 0 ? nullptr : first.get();
  a.bag_size = fixed;
  a.bags.most = bags.bags();
  a.pooling = pooling;
  a.out = out.get();
  a.out_stride = bags.dim;
  REQUIRE(Pool(*test.api, a, test.stream.get()).ok());
  return out.Get();
}

TEST_CASE("bags are pooled as on the host, to the bit", "[ops][cuda][exact]") {
  for (TestApi& test : Apis()) {
    for (uint32_t dim : {1u, 2u, 3u, 4u, 7u, 8u, 16u, 17u, 64u, 100u, 128u}) {
      for (uint32_t fixed : {0u, 1u, 2u, 3u, 4u, 5u, 9u}) {
        for (bool with_values : {false, true}) {
          const Bags bags(dim, fixed, 1);
          INFO(test.name << ", dim " << dim << ", fixed " << fixed << ", values " << with_values);
          CHECK(Differences(OnDevice(test, bags, with_values, fixed, Pooling::kSum),
                            OnHost(bags, with_values)) == 0);
        }
      }
    }
  }
}

TEST_CASE("a mean is the sum divided; an empty bag is zeros", "[ops][cuda]") {
  for (TestApi& test : Apis()) {
    const Bags bags(20, 0, 0);
    const std::vector<float> sum = OnDevice(test, bags, false, 0, Pooling::kSum);
    const std::vector<float> mean = OnDevice(test, bags, false, 0, Pooling::kMean);
    size_t empty = 0;
    for (uint32_t b = 0; b < bags.bags(); ++b) {
      const uint32_t n = bags.first[b + 1] - bags.first[b];
      empty += n == 0;
      for (uint32_t d = 0; d < 20; ++d) {
        const float want = n == 0 ? 0.0f : sum[b * 20 + d] / static_cast<float>(n);
        CHECK(mean[b * 20 + d] == want);
        if (n == 0) CHECK_FALSE(std::signbit(sum[b * 20 + d]));
      }
    }
    CHECK(empty > 0);
  }
}

TEST_CASE("absent rows read as zeros, and what is beyond the count stays", "[ops][cuda]") {
  for (TestApi& test : Apis()) {
    DeviceVector<float> table(test, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
    DeviceVector<uint32_t> rows(test, std::vector<uint32_t>{1, kNoRow, 0, 1, 0, 1});
    DeviceVector<uint32_t> count(test, 1, 5u);
    DeviceVector<float> out(test, 6 * 4, 9.0f);
    PoolArguments a;
    a.table = {table.get(), 4};
    a.dim = 4;
    a.row_of = rows.get();
    a.bags = {count.get(), 6};
    a.out = out.get();
    a.out_stride = 4;
    REQUIRE(Pool(*test.api, a, test.stream.get()).ok());
    CHECK(out.Get() == std::vector<float>{5, 6, 7, 8, 0, 0, 0, 0, 1, 2, 3, 4,
                                          5, 6, 7, 8, 1, 2, 3, 4, 9, 9, 9, 9});
    a.bag_size = 3;
    a.bags = {nullptr, 2};
    REQUIRE(Pool(*test.api, a, test.stream.get()).ok());
    const std::vector<float> pooled = out.Get();
    CHECK(std::vector<float>(pooled.begin(), pooled.begin() + 8) ==
          std::vector<float>{6, 8, 10, 12, 11, 14, 17, 20});
  }
}

}  // namespace
}  // namespace strata::ops::gpu
