#include "ops/nn/embedding.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "ops/coalesce_sum.h"
#include "ops/cpu_features.h"
#include "ops/nn/embedding_types.h"
#include "ops/nn/sparse_examples.h"

namespace strata::ops {
namespace {

std::vector<float> Values(size_t n, uint32_t seed) {
  std::vector<float> out(n);
  for (float& x : out) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<float>(static_cast<int32_t>(seed)) * 0x1p-31f;
  }
  return out;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Four examples with 3, 0, 5 and 2 features over 4 rows of dim + 1 floats.
struct Problem {
  explicit Problem(uint32_t dim) : rows(Values(4 * (dim + 1), 1)) {
    x = {offsets.data(), row.data(), values.data(), rows.data(), dim + 1, nullptr, 0, nullptr};
  }
  std::vector<uint32_t> offsets = {0, 3, 3, 8, 10};
  std::vector<uint32_t> row = {0, 2, 3, 1, 1, 0, 2, 3, 3, 0};
  std::vector<uint32_t> example = {0, 0, 0, 2, 2, 2, 2, 2, 3, 3};
  std::vector<uint32_t> first = {0, 3, 5, 7, 10}, occurrences = {0, 5, 9, 3, 4, 1, 6, 2, 7, 8};
  std::vector<float> values = Values(10, 2), rows;
  SparseExamples x;
};

constexpr uint32_t kFields = 4;
const std::vector<uint32_t> kOrdinals = {0, 1, 2, 0, 1, 2, 3, 4, 0, 1};
// Missing fields before, between and after; the last of example 2 is beyond the matrix.
const std::vector<uint32_t> kNamed = {0, 1, 3, 0, 1, 2, 3, 9, 1, 2};

TEST_CASE("embeddings by field and their gradients, to the bit", "[ops]") {
  for (const bool named : {false, true}) {
    const std::vector<uint32_t>& field = named ? kNamed : kOrdinals;
    for (uint32_t dim : {1u, 3u, 16u, 35u}) {
      Problem p(dim);
      if (named) p.x.fields = kNamed.data();
      const size_t stride = kFields * dim + 2;
      std::vector<float> expected(4 * stride, 7.0f);
      for (size_t i = 0; i < 4; ++i) {
        for (size_t c = 0; c < kFields * dim; ++c) expected[i * stride + c] = 0.0f;
      }
      const std::vector<float> gradient = Values(4 * stride, 5);
      std::vector<float> sums(4 * (dim + 1), 7.0f);
      for (uint32_t f = 0; f < 10; ++f) {
        if (field[f] >= kFields) continue;
        for (uint32_t d = 0; d < dim; ++d) {
          expected[p.example[f] * stride + field[f] * dim + d] =
              p.rows[p.row[f] * (dim + 1) + d] * p.values[f];
        }
      }
      for (uint32_t u = 0; u < 4; ++u) {
        for (uint32_t o = p.first[u]; o < p.first[u + 1]; ++o) {
          const uint32_t f = p.occurrences[o];
          for (uint32_t d = 0; d < dim; ++d) {
            const float by =
                field[f] < kFields ? gradient[p.example[f] * stride + field[f] * dim + d] : 0.0f;
            float& sum = sums[u * (dim + 1) + d];
            sum = o == p.first[u] ? p.values[f] * by : sum + p.values[f] * by;
          }
        }
      }
      for (IsaLevel level : {IsaLevel::kV3, SupportedIsaLevel()}) {
        const IsaLevel before = SetActiveIsaLevel(level);
        std::vector<float> got(expected.size(), 7.0f), got_sums(sums.size(), 7.0f), by = gradient;
        std::vector<uint32_t> example(10, 99);
        GatherEmbeddings(p.x, dim, 0, 3, {got.data(), stride, kFields}, example.data());
        GatherEmbeddings(p.x, dim, 3, 4, {got.data(), stride, kFields}, example.data());
        const FieldMatrix matrix = {by.data(), stride, kFields};
        EmbeddingGradients(p.x, dim, matrix, example.data(),
                           {p.first.data(), p.occurrences.data(), 0, 1}, got_sums.data());
        EmbeddingGradients(p.x, dim, matrix, example.data(),
                           {p.first.data(), p.occurrences.data(), 1, 4}, got_sums.data());
        SetActiveIsaLevel(before);
        REQUIRE(example == p.example);
        REQUIRE(SameBits(got, expected));
        REQUIRE(SameBits(got_sums, sums));
      }
    }
  }
}

TEST_CASE("rows are pooled, and gradients passed on, to the bit", "[ops]") {
  // Features 0-1, 2, 3-4-5-6, 7, 8-9 are a field each.
  const std::vector<uint32_t> first = {0, 2, 3, 7, 8, 10}, run_of = {0, 0, 1, 2, 2, 2, 2, 3, 4, 4};
  for (uint32_t dim : {1u, 4u, 16u, 35u}) {
    const Problem p(dim);
    const uint32_t width = dim + 1;
    std::vector<float> expected(5 * width), sums(4 * width);
    for (uint32_t r = 0; r < 5; ++r) {
      for (uint32_t f = first[r]; f < first[r + 1]; ++f) {
        for (uint32_t d = 0; d < width; ++d) {
          const float v = p.rows[p.row[f] * width + d];
          float& sum = expected[r * width + d];
          sum = f == first[r] ? v * p.values[f] : std::fma(v, p.values[f], sum);
        }
      }
    }
    const std::vector<float> gradient = Values(5 * width, 9);
    for (uint32_t u = 0; u < 4; ++u) {
      for (uint32_t o = p.first[u]; o < p.first[u + 1]; ++o) {
        const uint32_t f = p.occurrences[o];
        for (uint32_t d = 0; d < width; ++d) {
          const float term = p.values[f] * gradient[run_of[f] * width + d];
          float& sum = sums[u * width + d];
          sum = o == p.first[u] ? term : sum + term;
        }
      }
    }
    for (IsaLevel level : {IsaLevel::kV3, SupportedIsaLevel()}) {
      const IsaLevel before = SetActiveIsaLevel(level);
      std::vector<float> got(expected.size(), NAN), got_sums(sums.size(), NAN);
      const FieldRuns runs = {first.data(), run_of.data()};
      PoolRows(p.x, runs, 0, 2, got.data());
      PoolRows(p.x, runs, 2, 5, got.data());
      PooledGradients(p.x, runs, gradient.data(), {p.first.data(), p.occurrences.data(), 0, 4},
                      got_sums.data());
      SetActiveIsaLevel(before);
      REQUIRE(SameBits(got, expected));
      REQUIRE(SameBits(got_sums, sums));
    }
  }
}

}  // namespace
}  // namespace strata::ops
