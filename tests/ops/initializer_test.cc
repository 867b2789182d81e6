#include "ops/initializer.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <vector>

#include "ops/cpu_features.h"
#include "tests/ops/golden_hash.h"

namespace strata::ops {
namespace {

constexpr InitializerConfig kUniform{InitializerKind::kUniform, 1.0f};
constexpr InitializerConfig kNormal{InitializerKind::kNormal, 1.0f};

std::vector<float> Row(const InitializerConfig& config, uint64_t seed, uint32_t table, uint64_t key,
                       uint32_t dim) {
  std::vector<float> row(dim, 99.0f);
  InitialRow(config, seed, table, key, 0, dim, row.data());
  return row;
}

// Mean of x^k over 4 million elements of 250,000 rows.
struct Moments {
  double m[5] = {};
  float least = 1e9f, most = -1e9f;
  explicit Moments(const InitializerConfig& config) {
    constexpr size_t kRows = 250000;
    float row[16];
    for (size_t key = 0; key < kRows; ++key) {
      InitialRow(config, 42, 1, key, 0, 16, row);
      for (float x : row) {
        double power = 1;
        for (double& sum : m) {
          sum += power;
          power *= x;
        }
        least = std::min(least, x);
        most = std::max(most, x);
      }
    }
    for (double& sum : m) sum /= kRows * 16;
  }
};

// Kolmogorov and Smirnov's distance to a distribution, times sqrt(n): above 1.95 with probability
// .001 for true samples.
template <typename Cdf>
double KolmogorovSmirnov(std::vector<float> x, const Cdf& cdf) {
  std::sort(x.begin(), x.end());
  const double n = static_cast<double>(x.size());
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double p = cdf(x[i]);
    worst = std::max({worst, p - i / n, (i + 1) / n - p});
  }
  return worst * std::sqrt(n);
}

TEST_CASE("zero", "[ops][initializer]") {
  CHECK(Row({InitializerKind::kZero, 5.0f}, 1, 2, 3, 9) == std::vector<float>(9, 0.0f));
}

TEST_CASE("uniform has its moments, bounds and distribution", "[ops][initializer]") {
  const Moments moments(kUniform);
  CHECK(std::abs(moments.m[1]) < 1.2e-3);  // 4 standard errors of the mean of 4 million
  CHECK(std::abs(moments.m[2] - 1.0 / 3) < 6e-4);
  CHECK(std::abs(moments.m[3]) < 8e-4);
  CHECK(std::abs(moments.m[4] - 1.0 / 5) < 6e-4);
  CHECK(moments.least >= -1.0f);
  CHECK(moments.least < -0.99999f);
  CHECK(moments.most < 1.0f);
  CHECK(moments.most > 0.99999f);
  CHECK(KolmogorovSmirnov(Row(kUniform, 7, 0, 123, 100000), [](double x) { return (x + 1) / 2; }) <
        1.95);
}

TEST_CASE("normal has its moments, bounds and distribution", "[ops][initializer]") {
  const Moments moments(kNormal);
  CHECK(std::abs(moments.m[1]) < 2e-3);
  CHECK(std::abs(moments.m[2] - 1) < 3e-3);
  CHECK(std::abs(moments.m[3]) < 8e-3);
  CHECK(std::abs(moments.m[4] - 3) < 2e-2);
  CHECK(moments.least < -4.5f);
  CHECK(moments.most > 4.5f);
  CHECK(std::max(-moments.least, moments.most) < 5.78f);
  CHECK(KolmogorovSmirnov(Row(kNormal, 7, 0, 123, 100000),
                          [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }) < 1.95);
}

TEST_CASE("scale multiplies", "[ops][initializer]") {
  for (InitializerConfig config : {kUniform, kNormal}) {
    const std::vector<float> unit = Row(config, 1, 2, 3, 100);
    config.scale = 0.01f;
    const std::vector<float> scaled = Row(config, 1, 2, 3, 100);
    for (size_t i = 0; i < 100; ++i) CHECK(scaled[i] == 0.01f * unit[i]);
  }
}

TEST_CASE("an element depends on its number, not on the call that asks for it",
          "[ops][initializer]") {
  for (const InitializerConfig& config : {kUniform, kNormal}) {
    const std::vector<float> whole = Row(config, 5, 1, 77, 64);
    for (uint32_t first : {0u, 1u, 13u, 63u}) {
      std::vector<float> part(64 - first);
      InitialRow(config, 5, 1, 77, first, 64 - first, part.data());
      CHECK(std::equal(part.begin(), part.end(), whole.begin() + first));
    }
  }
}

TEST_CASE("seed, table and key each change every row", "[ops][initializer]") {
  std::set<std::vector<float>> rows;
  size_t asked = 0;
  const uint64_t keys[] = {0, 1, 2, 1ull << 32, 1ull << 63, ~0ull - 1, ~0ull};
  for (uint64_t seed : {0ull, 1ull, 2ull, ~0ull}) {
    for (uint32_t table : {0u, 1u, 2u, ~0u}) {
      for (uint64_t key : keys) {
        rows.insert(Row(kUniform, seed, table, key, 4));
        ++asked;
      }
    }
  }
  CHECK(rows.size() == asked);
}

TEST_CASE("elements of neighbouring keys, tables and seeds are uncorrelated",
          "[ops][initializer]") {
  constexpr uint32_t kDim = 100000;
  const std::vector<float> base = Row(kNormal, 1, 1, 1, kDim);
  std::vector<std::vector<float>> others = {
      Row(kNormal, 1, 1, 2, kDim), Row(kNormal, 1, 2, 1, kDim), Row(kNormal, 2, 1, 1, kDim)};
  std::vector<float> shifted(kDim);
  InitialRow(kNormal, 1, 1, 1, 1, kDim, shifted.data());
  others.push_back(shifted);
  for (const std::vector<float>& other : others) {
    double sum = 0;
    for (uint32_t i = 0; i < kDim; ++i) sum += double{base[i]} * other[i];
    CHECK(std::abs(sum / std::sqrt(kDim)) < 4);
  }
}

uint64_t HashOfRows() {
  GoldenHash hash;
  for (InitializerKind kind : {InitializerKind::kUniform, InitializerKind::kNormal}) {
    for (uint64_t key = 0; key < 3000; ++key) {
      hash.Add(Row({kind, 0.05f}, 12345, 3, key * 0x123456789abcdefull, 17));
    }
  }
  return hash.value();
}

TEST_CASE("golden bits of initial rows, for every instruction set", "[ops][initializer][exact]") {
  constexpr uint64_t kGolden = 0x6da9bf06461303fd;
  const IsaLevel supported = SetActiveIsaLevel(IsaLevel::kV3);
  CHECK(HashOfRows() == kGolden);
  if (SupportedIsaLevel() >= IsaLevel::kV4) {
    SetActiveIsaLevel(IsaLevel::kV4);
    CHECK(HashOfRows() == kGolden);
  } else {
    WARN("no AVX-512 here: its build was not compared");
  }
  SetActiveIsaLevel(supported);
}

TEST_CASE("rows of every length are prefixes of one long row", "[ops][initializer]") {
  for (const InitializerConfig& config : {kUniform, kNormal}) {
    const std::vector<float> all = Row(config, 9, 2, 77, 67);
    for (uint32_t dim = 0; dim <= 67; ++dim) {
      std::vector<float> row(dim + 1, 99.0f);
      InitialRow(config, 9, 2, 77, 0, dim, row.data());
      CHECK(std::equal(row.begin(), row.begin() + dim, all.begin()));
      CHECK(row[dim] == 99.0f);  // nothing is written behind it
    }
  }
}

TEST_CASE("elements follow the documented hash", "[ops][initializer]") {
  // Computed from the definition in counter_random.h by a separate program in integers and double.
  const std::vector<float> uniform = Row(kUniform, 1, 0, 42, 2);
  CHECK(uniform[0] == 0x1.885d68p-1f);
  CHECK(uniform[1] == -0x1.ff1230p-2f);
  const std::vector<float> normal = Row(kNormal, 1, 0, 42, 2);
  CHECK(normal[0] == Approx(0.4787883189927155).epsilon(1e-6));
  CHECK(normal[1] == Approx(1.365933626875558).epsilon(1e-6));
}

}  // namespace
}  // namespace strata::ops
