// Max pooling and its gradients against ops/nn, bit for bit.
#include "ops/cuda/nn/max_pool.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "ops/coalesce_sum.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/rows/coalesce.h"
#include "ops/nn/embedding.h"
#include "ops/nn/max_pool.h"
#include "ops/nn/sparse_examples.h"
#include "tests/ops/cuda/api/test_apis.h"

namespace strata::ops::gpu {
namespace {

using testing::Apis;
using testing::DeviceVector;
using testing::Differences;
using testing::Random;
using testing::TestApi;

constexpr uint32_t kRuns = 200, kUnique = 40, kFields = 3;

// Runs of one to five features, of fields 0 to kFields, of which 1 and 2 are pooled by max; the
// last is one that nobody knows.
struct Problem {
  explicit Problem(uint32_t dim) : dim(dim) {
    Random random(dim);
    for (uint32_t run = 0; run < kRuns; ++run) {
      field.push_back(random.Below(kFields + 1));
      for (uint32_t n = 1 + random.Below(5); n > 0; --n) {
        run_of.push_back(run);
        row.push_back(random.Below(2) * random.Below(kUnique));
        values.push_back(random.Float());
      }
      first.push_back(static_cast<uint32_t>(row.size()));
    }
    for (uint32_t u = 0; u < kUnique; ++u) row[u] = u;  // every row occurs
    rows = random.Floats(kUnique * dim);
    for (uint32_t i = 0; i < 9; ++i) rows[i * 5 % rows.size()] = -0.0f;
    rows[7 % rows.size()] = std::numeric_limits<float>::quiet_NaN();
    gradient = random.Floats(kRuns * dim);
    for (uint32_t u = 0; u < kUnique; ++u) {
      for (uint32_t f = 0; f < row.size(); ++f) {
        if (row[f] == u) occurrences.push_back(f);
      }
      key_first.push_back(static_cast<uint32_t>(occurrences.size()));
    }
  }
  bool IsMax(uint32_t run) const {
    return field[run] < kFields && max_fields[field[run]] != 0 && first[run + 1] - first[run] > 1;
  }
  SparseExamples OnHost() const {
    SparseExamples x;
    x.row = row.data();
    x.values = values.data();
    x.rows = rows.data();
    x.stride = dim;
    return x;
  }

  uint32_t dim;
  std::vector<uint32_t> first{0}, field, run_of, row, key_first{0}, occurrences;
  std::vector<uint32_t> max_fields{0, 1, 1, 1};  // the last is beyond them
  std::vector<float> values, rows, gradient;
};

// What comes of them: pooled rows of max runs, and gradients of all rows.
struct Right {
  explicit Right(const Problem& p)
      : pooled(kRuns * p.dim, 5.0f), from(kRuns * p.dim, 77), sums(kUnique * p.dim) {
    const SparseExamples x = p.OnHost();
    // Behind the runs' gradients: a row of its own for each feature of a max run.
    std::vector<float> gradient = p.gradient;
    std::vector<uint32_t> run_of = p.run_of;
    for (uint32_t run = 0; run < kRuns; ++run) {
      if (!p.IsMax(run)) continue;
      const MaxRun features = {p.first[run], p.first[run + 1]};
      MaxPoolRow(x, features, pooled.data() + run * p.dim, from.data() + run * p.dim);
      const size_t before = gradient.size();
      gradient.resize(before + (features.end - features.first) * p.dim);
      MaxPoolGradients(x, features, from.data() + run * p.dim, p.gradient.data() + run * p.dim,
                       gradient.data() + before);
      for (uint32_t f = features.first; f < features.end; ++f) {
        run_of[f] = static_cast<uint32_t>(before / p.dim) + f - features.first;
      }
    }
    ops::PooledGradients(x, {p.first.data(), run_of.data()}, gradient.data(),
                         {p.key_first.data(), p.occurrences.data(), 0, kUnique}, sums.data());
  }
  std::vector<float> pooled;
  std::vector<uint32_t> from;
  std::vector<float> sums;
};

void CheckProblem(TestApi& test, const Problem& p) {
  const Right right(p);
  const auto features = static_cast<uint32_t>(p.row.size());
  DeviceVector<uint32_t> first(test, p.first), field(test, p.field), run_of(test, p.run_of);
  DeviceVector<uint32_t> row(test, p.row), max_fields(test, p.max_fields);
  DeviceVector<uint32_t> from(test, right.from.size(), 77);
  DeviceVector<uint32_t> count(test, std::vector<uint32_t>{kRuns});
  DeviceVector<float> values(test, p.values), rows(test, p.rows), gradient(test, p.gradient);
  DeviceVector<float> pooled(test, right.pooled.size(), 5.0f), sums(test, right.sums.size());
  SparseExamples x = p.OnHost();
  x.row = row.get();
  x.values = values.get();
  x.rows = rows.get();
  // Memory is for more runs than there are.
  const MaxRuns runs = {
      first.get(), field.get(), {count.get(), kRuns + 9}, max_fields.get(), kFields};
  for (uint32_t* const to : {static_cast<uint32_t*>(nullptr), from.get()}) {
    pooled.Set(std::vector<float>(right.pooled.size(), 5.0f));
    REQUIRE(MaxPool(*test.api, x, runs, p.dim, pooled.get(), to, test.stream.get()).ok());
    CHECK(Differences(pooled.Get(), right.pooled) == 0);
  }
  CHECK(from.Get() == right.from);

  auto arena = Arena::Create(test.api.get(), MemoryKind::kDevice, 16 << 20, "test");
  REQUIRE(arena.ok());
  auto coalescer =
      Coalescer::Create(test.api.get(), arena->get(), {features, p.dim, 4}, test.stream.get());
  REQUIRE(coalescer.ok());
  GroupedKeys grouped;
  REQUIRE((*coalescer)->Group(row.get(), features, 32, &grouped, test.stream.get()).ok());
  REQUIRE(MaxPooledGradients(*test.api, **coalescer, grouped, values.get(), run_of.get(), runs,
                             from.get(), gradient.get(), p.dim, {sums.get(), p.dim},
                             test.stream.get())
              .ok());
  CHECK(Differences(sums.Get(), right.sums) == 0);
}

TEST_CASE("max pooling is the host's, to the bit", "[ops][cuda][exact]") {
  for (TestApi& test : Apis()) {
    for (uint32_t dim : {1u, 3u, 4u, 9u, 16u}) {
      INFO(test.name << ", dim " << dim);
      CheckProblem(test, Problem(dim));
    }
  }
}

}  // namespace
}  // namespace strata::ops::gpu
