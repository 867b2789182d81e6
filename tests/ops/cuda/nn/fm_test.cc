// Factorization machines against ops/nn/fm.h and fm_heads.h, bit for bit.
#include "ops/cuda/nn/fm.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "ops/coalesce_sum.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/rows/coalesce.h"
#include "ops/nn/fm.h"
#include "ops/nn/fm_heads.h"
#include "ops/nn/fm_types.h"
#include "ops/nn/sparse_examples.h"
#include "tests/ops/cuda/api/test_apis.h"

namespace strata::ops::gpu {
namespace {

using testing::Apis;
using testing::DeviceVector;
using testing::Differences;
using testing::Random;
using testing::TestApi;

constexpr uint32_t kExamples = 150, kUnique = 60, kFields = 9, kNumeric = 3;

// Examples of up to kFields features, some far more frequent than others.
struct Problem {
  uint32_t dim, stride;
  bool with_values, with_fields;
  std::vector<uint32_t> offsets{0}, row, fields, first, occurrences;
  std::vector<float> values, rows, numeric, numeric_weight, numeric_embedding;

  Problem(uint32_t dim, bool with_values, bool with_fields)
      : dim(dim), stride((dim + 4) / 4 * 4), with_values(with_values), with_fields(with_fields) {
    Random random(dim);
    for (uint32_t i = 0; i < kExamples; ++i) {
      for (uint32_t field = 0; field < kFields; ++field) {
        if (random.Below(4) == 0) continue;
        row.push_back(random.Below(2) * random.Below(kUnique));
        fields.push_back(field);
      }
      offsets.push_back(static_cast<uint32_t>(row.size()));
    }
    for (uint32_t u = 0; u < kUnique; ++u) row[u] = u;  // every row occurs
    values = random.Floats(row.size());
    rows = random.Floats(kUnique * stride);
    numeric = random.Floats(kExamples * kNumeric);
    numeric_weight = random.Floats(kNumeric);
    numeric_embedding = random.Floats(kNumeric * dim);
    for (uint32_t u = 0; u < kUnique; ++u) {
      first.push_back(static_cast<uint32_t>(occurrences.size()));
      for (uint32_t f = 0; f < row.size(); ++f) {
        if (row[f] == u) occurrences.push_back(f);
      }
    }
    first.push_back(static_cast<uint32_t>(occurrences.size()));
  }
  uint32_t features() const { return static_cast<uint32_t>(row.size()); }
};

void CheckProblem(TestApi& test, const Problem& p, bool embeddings) {
  SparseExamples x;
  x.offsets = p.offsets.data();
  x.row = p.row.data();
  x.values = p.with_values ? p.values.data() : nullptr;
  x.rows = p.rows.data();
  x.stride = p.stride;
  x.numeric = p.numeric.data();
  x.numeric_count = kNumeric;
  x.fields = p.with_fields ? p.fields.data() : nullptr;
  const uint32_t slots = kFields - 2;  // features of the last fields take no part
  const size_t wide = slots * p.dim + (p.dim % 4 == 0 ? 4 : 1);
  std::vector<float> logits(kExamples), sums(kExamples * p.dim);
  std::vector<float> terms(kExamples * wide, 5.0f);
  std::vector<uint32_t> example(p.features());
  FmOutputs out = {logits.data(), sums.data(), example.data(), embeddings ? terms.data() : nullptr,
                   wide,          slots};
  FmForward(x, p.dim, 0.25f, p.numeric_weight.data(),
            p.with_values ? p.numeric_embedding.data() : nullptr, 0, kExamples, out);
  const std::vector<float> gradient = Random(5).Floats(kExamples);
  const std::vector<float> by_terms = Random(6).Floats(terms.size());
  FmGradientInputs in = {gradient.data(),
                         sums.data(),
                         example.data(),
                         embeddings ? by_terms.data() : nullptr,
                         wide,
                         slots};
  std::vector<float> sum_of_rows(kUnique * p.stride, 5.0f);
  FmGradients(x, p.dim, in, {p.first.data(), p.occurrences.data(), 0, kUnique}, sum_of_rows.data());

  DeviceVector<uint32_t> offsets(test, p.offsets), row(test, p.row), fields(test, p.fields);
  DeviceVector<float> values(test, p.values), rows(test, p.rows), numeric(test, p.numeric);
  DeviceVector<float> numeric_weight(test, p.numeric_weight), bias(test, 1, 0.25f);
  DeviceVector<float> numeric_embedding(test, p.numeric_embedding), by_terms_there(test, by_terms);
  DeviceVector<float> logits_there(test, kExamples), sums_there(test, sums.size());
  DeviceVector<float> terms_there(test, terms.size(), 5.0f), gradient_there(test, gradient);
  DeviceVector<uint32_t> example_there(test, p.features());
  DeviceVector<float> out_there(test, sum_of_rows.size(), 5.0f);
  FmTask task = {x, kExamples, p.dim};
  task.x.offsets = offsets.get();
  task.x.row = row.get();
  task.x.values = p.with_values ? values.get() : nullptr;
  task.x.rows = rows.get();
  task.x.numeric = numeric.get();
  task.x.fields = p.with_fields ? fields.get() : nullptr;
  out = {logits_there.get(),
         sums_there.get(),
         example_there.get(),
         embeddings ? terms_there.get() : nullptr,
         wide,
         slots};
  REQUIRE(FmForward(*test.api, task, bias.get(), numeric_weight.get(),
                    p.with_values ? numeric_embedding.get() : nullptr, out, test.stream.get())
              .ok());
  CHECK(Differences(logits_there.Get(), logits) == 0);
  CHECK(Differences(sums_there.Get(), sums) == 0);
  CHECK(Differences(terms_there.Get(), terms) == 0);
  CHECK(example_there.Get() == example);

  auto arena = Arena::Create(test.api.get(), MemoryKind::kDevice, 16 << 20, "test");
  REQUIRE(arena.ok());
  auto coalescer =
      Coalescer::Create(test.api.get(), arena->get(), {p.features(), p.dim, 4}, test.stream.get());
  REQUIRE(coalescer.ok());
  GroupedKeys grouped;
  REQUIRE((*coalescer)->Group(row.get(), p.features(), 32, &grouped, test.stream.get()).ok());
  in = {gradient_there.get(),
        sums_there.get(),
        example_there.get(),
        embeddings ? by_terms_there.get() : nullptr,
        wide,
        slots};
  REQUIRE(FmGradients(*test.api, **coalescer, grouped, task, in, out_there.get(), p.stride,
                      test.stream.get())
              .ok());
  CHECK(Differences(out_there.Get(), sum_of_rows) == 0);

  // Element by element: the same sums and embeddings, which nobody has written yet.
  const std::vector<float> by_element = Random(7).Floats(sums.size());
  std::vector<float> elements(sums.size());
  const float* const numeric_vectors = p.with_values ? p.numeric_embedding.data() : nullptr;
  const FmOutputs host = {nullptr, sums.data(), nullptr, nullptr, 0, 0};
  ops::FmTerms(x, p.dim, numeric_vectors, 0, kExamples, host, elements.data());
  ops::FmTermGradients(x, p.dim,
                       {nullptr, sums.data(), example.data(),
                        in.embeddings == nullptr ? nullptr : by_terms.data(), wide, slots},
                       by_element.data(), {p.first.data(), p.occurrences.data(), 0, kUnique},
                       sum_of_rows.data());
  DeviceVector<float> elements_there(test, elements.size()), by_element_there(test, by_element);
  sums_there.Set(std::vector<float>(sums.size(), 5.0f));
  terms_there.Set(std::vector<float>(terms.size(), 5.0f));
  example_there.Set(std::vector<uint32_t>(p.features(), 77));
  out.logits = nullptr;
  REQUIRE(FmTerms(*test.api, task, p.with_values ? numeric_embedding.get() : nullptr, out,
                  elements_there.get(), test.stream.get())
              .ok());
  CHECK(Differences(elements_there.Get(), elements) == 0);
  CHECK(Differences(sums_there.Get(), sums) == 0);
  CHECK(Differences(terms_there.Get(), terms) == 0);
  CHECK(example_there.Get() == example);
  in.gradient = nullptr;
  REQUIRE(FmTermGradients(*test.api, **coalescer, grouped, task, in, by_element_there.get(),
                          out_there.get(), p.stride, test.stream.get())
              .ok());
  CHECK(Differences(out_there.Get(), sum_of_rows) == 0);
}

TEST_CASE("factorization machines are the host's, to the bit", "[ops][cuda][exact]") {
  for (TestApi& test : Apis()) {
    for (uint32_t dim : {1u, 3u, 4u, 8u, 16u, 20u, 33u, 64u}) {
      for (int variant = 0; variant < 8; ++variant) {
        INFO(test.name << ", dim " << dim << ", variant " << variant);
        CheckProblem(test, Problem(dim, variant % 2 == 1, variant / 2 % 2 == 1), variant >= 4);
      }
    }
  }
}

}  // namespace
}  // namespace strata::ops::gpu
