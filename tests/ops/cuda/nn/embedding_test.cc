// Embeddings by field, first order terms and the rows' gradients, against ops/nn, bit for bit.
#include "ops/cuda/nn/embedding.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "ops/coalesce.h"
#include "ops/coalesce_sum.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/rows/coalesce.h"
#include "ops/nn/embedding.h"
#include "ops/nn/embedding_types.h"
#include "ops/nn/fm.h"
#include "ops/nn/sparse_examples.h"
#include "tests/ops/cuda/api/test_apis.h"

namespace strata::ops::gpu {
namespace {

using testing::Apis;
using testing::DeviceVector;
using testing::Differences;
using testing::Random;
using testing::TestApi;

constexpr uint32_t kExamples = 150, kUnique = 60, kFields = 9, kSlots = 7, kNumeric = 3;

// Examples of up to kFields features, row 0 far more frequent than others; row 1 never occurs.
struct Problem {
  uint32_t dim, tasks, stride;
  bool with_values, with_fields;
  std::vector<uint32_t> offsets{0}, row, fields, first, occurrences, run_of, run_first{0};
  std::vector<float> values, rows, numeric, numeric_weight, bias;

  // A row is `dim` floats and a weight for each task.
  Problem(uint32_t dim, uint32_t tasks, bool with_values, bool with_fields)
      : dim(dim),
        tasks(tasks),
        stride((dim + tasks + 3) / 4 * 4),
        with_values(with_values),
        with_fields(with_fields) {
    Random random(dim + 1);
    for (uint32_t i = 0; i < kExamples; ++i) {
      for (uint32_t field = 0; field < kFields; ++field) {
        if (random.Below(4) == 0) continue;
        row.push_back(random.Below(2) * random.Below(kUnique));
        if (row.back() == 1) row.back() = 2;
        fields.push_back(field);
      }
      offsets.push_back(static_cast<uint32_t>(row.size()));
    }
    values = random.Floats(row.size());
    rows = random.Floats(kUnique * stride);
    numeric = random.Floats(kExamples * kNumeric);
    numeric_weight = random.Floats(kNumeric * tasks);
    bias = random.Floats(tasks);
    for (uint32_t u = 0; u < kUnique; ++u) {
      first.push_back(static_cast<uint32_t>(occurrences.size()));
      for (uint32_t f = 0; f < features(); ++f) {
        if (row[f] == u) occurrences.push_back(f);
      }
    }
    first.push_back(static_cast<uint32_t>(occurrences.size()));
    // Runs of one to four features.
    while (run_of.size() < row.size()) {
      const size_t left = row.size() - run_of.size();
      run_of.insert(run_of.end(), std::min<size_t>(left, 1 + random.Below(4)),
                    static_cast<uint32_t>(run_first.size() - 1));
      run_first.push_back(static_cast<uint32_t>(run_of.size()));
    }
  }
  uint32_t features() const { return static_cast<uint32_t>(row.size()); }
  uint32_t runs() const { return static_cast<uint32_t>(run_first.size() - 1); }
  SparseExamples OnHost() const {
    SparseExamples x;
    x.offsets = offsets.data();
    x.row = row.data();
    x.values = with_values ? values.data() : nullptr;
    x.rows = rows.data();
    x.stride = stride;
    x.numeric = numeric.data();
    x.numeric_count = kNumeric;
    x.fields = with_fields ? fields.data() : nullptr;
    return x;
  }
};

// The problem on a device, its keys grouped by the host.
struct OnDevice {
  OnDevice(TestApi& test, const Problem& p)
      : offsets(test, p.offsets),
        row(test, p.row),
        fields(test, p.fields),
        first(test, p.first),
        occurrences(test, p.occurrences),
        keys(test, Ordinals()),
        chunk_first(test, Chunks(p)),
        counts(test, std::vector<uint32_t>{kUnique, Chunks(p).back()}),
        values(test, p.values),
        rows(test, p.rows),
        numeric(test, p.numeric) {
    x = p.OnHost();
    x.offsets = offsets.get();
    x.row = row.get();
    x.values = p.with_values ? values.get() : nullptr;
    x.rows = rows.get();
    x.numeric = numeric.get();
    x.fields = p.with_fields ? fields.get() : nullptr;
    grouped = {keys.get(),   first.get(),       occurrences.get(), counts.get(),
               p.features(), chunk_first.get(), counts.get() + 1};
    auto made = Arena::Create(test.api.get(), MemoryKind::kDevice, 16 << 20, "test");
    REQUIRE(made.ok());
    arena = *std::move(made);
    Coalescer::Options options = {p.features(), p.stride, 4};
    options.groups = false;
    auto sums = Coalescer::Create(test.api.get(), arena.get(), options, test.stream.get());
    REQUIRE(sums.ok());
    coalescer = *std::move(sums);
    CHECK(arena->total_bytes() - arena->free_bytes() == *Coalescer::Bytes(test.api.get(), options));
    GroupedKeys none;
    CHECK(coalescer->Group(row.get(), p.features(), 32, &none, test.stream.get()).code() ==
          absl::StatusCode::kFailedPrecondition);
  }
  static std::vector<uint32_t> Ordinals() {
    std::vector<uint32_t> keys(kUnique);
    for (uint32_t u = 0; u < kUnique; ++u) keys[u] = u;
    return keys;
  }
  static std::vector<uint32_t> Chunks(const Problem& p) {
    std::vector<uint32_t> chunks{0};
    for (uint32_t u = 0; u < kUnique; ++u) {
      const uint32_t n = p.first[u + 1] - p.first[u];
      chunks.push_back(chunks.back() + (n > 32 ? (n + 31) / 32 : 0));
    }
    return chunks;
  }

  DeviceVector<uint32_t> offsets, row, fields, first, occurrences, keys, chunk_first, counts;
  DeviceVector<float> values, rows, numeric;
  SparseExamples x;
  GroupedKeys grouped;
  std::unique_ptr<Arena> arena;
  std::unique_ptr<Coalescer> coalescer;
};

void CheckProblem(TestApi& test, const Problem& p) {
  const SparseExamples x = p.OnHost();
  CudaApi& api = *test.api;
  const StreamHandle stream = test.stream.get();
  OnDevice there(test, p);
  const size_t wide = kSlots * p.dim + (p.dim % 4 == 0 ? 4 : 1);
  const uint32_t task_stride = p.tasks == 1 ? 1 : (p.tasks + 4) / 4 * 4;
  std::vector<float> matrix(kExamples * wide, 5.0f), logits(kExamples * task_stride, 5.0f);
  std::vector<uint32_t> example(p.features());
  ops::GatherEmbeddings(x, p.dim, 0, kExamples, {matrix.data(), wide, kSlots}, example.data());
  for (uint32_t t = 0; t < p.tasks; ++t) {
    std::vector<float> one(kExamples), numeric_weight;
    for (uint32_t j = 0; j < kNumeric; ++j) {
      numeric_weight.push_back(p.numeric_weight[j * p.tasks + t]);
    }
    ops::LinearForward(x, p.dim + t, p.bias[t], numeric_weight.data(), 0, kExamples, one.data(),
                       nullptr);
    for (uint32_t i = 0; i < kExamples; ++i) logits[i * task_stride + t] = one[i];
  }
  DeviceVector<float> matrix_there(test, matrix.size(), 5.0f);
  DeviceVector<float> logits_there(test, logits.size(), 5.0f);
  DeviceVector<float> bias(test, p.bias), numeric_weight(test, p.numeric_weight);
  DeviceVector<uint32_t> example_there(test, p.features()), again(test, p.features());
  REQUIRE(GatherEmbeddings(api, there.x, kExamples, p.dim, {matrix_there.get(), wide, kSlots},
                           example_there.get(), stream)
              .ok());
  REQUIRE(LinearForward(api, there.x, kExamples, {p.dim, p.tasks, bias.get(), numeric_weight.get()},
                        {logits_there.get(), task_stride}, again.get(), stream)
              .ok());
  CHECK(Differences(matrix_there.Get(), matrix) == 0);
  CHECK(Differences(logits_there.Get(), logits) == 0);
  CHECK(example_there.Get() == example);
  CHECK(again.Get() == example);

  std::vector<float> by_matrix = Random(6).Floats(matrix.size());
  const std::vector<float> by_logit = Random(7).Floats(logits.size());
  std::vector<float> sums(kUnique * p.stride, 5.0f);
  const KeyOccurrences keys = {p.first.data(), p.occurrences.data(), 0, kUnique};
  ops::EmbeddingGradients(x, p.dim, {by_matrix.data(), wide, kSlots}, example.data(), keys,
                          sums.data());
  for (uint32_t t = 0; t < p.tasks; ++t) {
    std::vector<float> one;
    for (uint32_t i = 0; i < kExamples; ++i) one.push_back(by_logit[i * task_stride + t]);
    ops::CoalesceScaled(keys, example.data(), one.data(), x.values, sums.data() + p.dim + t,
                        p.stride);
  }
  DeviceVector<float> by_matrix_there(test, by_matrix), by_logit_there(test, by_logit);
  DeviceVector<float> sums_there(test, sums.size(), 5.0f);
  REQUIRE(EmbeddingGradients(api, *there.coalescer, there.grouped, there.x, p.dim,
                             {by_matrix_there.get(), wide, kSlots}, example_there.get(),
                             {sums_there.get(), p.stride}, stream)
              .ok());
  REQUIRE(WeightGradients(api, *there.coalescer, there.grouped, there.x,
                          {by_logit_there.get(), task_stride}, p.tasks, example_there.get(),
                          {sums_there.get() + p.dim, p.stride}, stream)
              .ok());
  CHECK(Differences(sums_there.Get(), sums) == 0);

  const std::vector<float> by_run = Random(8).Floats(p.runs() * p.stride);
  ops::PooledGradients(x, {p.run_first.data(), p.run_of.data()}, by_run.data(), keys, sums.data());
  DeviceVector<float> by_run_there(test, by_run);
  DeviceVector<uint32_t> run_of(test, p.run_of);
  REQUIRE(PooledGradients(api, *there.coalescer, there.grouped, there.x.values, run_of.get(),
                          by_run_there.get(), p.stride, {sums_there.get(), p.stride}, stream)
              .ok());
  CHECK(Differences(sums_there.Get(), sums) == 0);
}

TEST_CASE("embeddings by field and their gradients are the host's, to the bit",
          "[ops][cuda][exact]") {
  for (TestApi& test : Apis()) {
    for (uint32_t dim : {1u, 3u, 4u, 8u, 16u, 33u}) {
      for (uint32_t tasks : {1u, 3u, 4u, 6u}) {
        for (int variant = 0; variant < 4; ++variant) {
          INFO(test.name << ", dim " << dim << ", " << tasks << " tasks, variant " << variant);
          CheckProblem(test, Problem(dim, tasks, variant % 2 == 1, variant >= 2));
        }
      }
    }
  }
}

}  // namespace
}  // namespace strata::ops::gpu
