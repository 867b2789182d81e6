#include "ops/nn/fm.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "ops/coalesce_sum.h"
#include "ops/cpu_features.h"
#include "ops/nn/fm_types.h"
#include "ops/nn/loss/logistic.h"
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

// Four examples with 3, 0, 5 and 2 features over 4 rows.
struct Problem {
  explicit Problem(uint32_t dim)
      : rows(Values(4 * (dim + 1), 1)), numeric_embedding(Values(size_t{2} * dim, 5)) {
    x = {offsets.data(), row.data(), values.data(), rows.data(), dim + 1, numeric.data(), 2};
  }
  std::vector<uint32_t> offsets = {0, 3, 3, 8, 10};
  std::vector<uint32_t> row = {0, 2, 3, 1, 1, 0, 2, 3, 3, 0};
  std::vector<float> values = Values(10, 2), numeric = Values(8, 3), weight = Values(2, 4);
  std::vector<float> rows, numeric_embedding;
  SparseExamples x;
};

// The ordinals of the features, which a batch names where another example needs it.
const std::vector<uint32_t> kOrdinals = {0, 1, 2, 0, 1, 2, 3, 4, 0, 1};

float ExpectedLogit(const Problem& p, uint32_t dim, uint32_t i, bool second_order_of_numbers,
                    std::vector<float>* sums) {
  float logit = 0.25f;
  std::vector<float> sum(dim), square(dim), lanes(16);
  const auto add = [&](const float* v, float value) {
    for (uint32_t d = 0; d < dim; ++d) {
      const float term = v[d] * value;
      sum[d] += term;
      square[d] = std::fma(term, term, square[d]);
    }
  };
  for (uint32_t f = p.offsets[i]; f < p.offsets[i + 1]; ++f) {
    const float* r = &p.rows[p.row[f] * (dim + 1)];
    logit += r[dim] * p.values[f];
    add(r, p.values[f]);
  }
  for (uint32_t j = 0; j < 2; ++j) {
    logit = std::fma(p.weight[j], p.numeric[i * 2 + j], logit);
    if (second_order_of_numbers) add(&p.numeric_embedding[j * dim], p.numeric[i * 2 + j]);
  }
  for (uint32_t d = 0; d < dim; ++d) lanes[d % 16] += std::fma(sum[d], sum[d], -square[d]);
  for (uint32_t half = 8; half > 0; half /= 2) {
    for (uint32_t d = 0; d < half; ++d) lanes[d] += lanes[d + half];
  }
  sums->insert(sums->end(), sum.begin(), sum.end());
  return std::fma(0.5f, lanes[0], logit);
}

TEST_CASE("factorization machine forward, to the bit", "[ops]") {
  for (uint32_t dim : {1u, 3u, 8u, 16u, 22u, 40u}) {
    Problem p(dim);
    for (const int of : {0, 1, 2, 3}) {
      const bool numbers = of % 2 == 1;
      p.x.fields = of / 2 == 1 ? kOrdinals.data() : nullptr;
      std::vector<float> logits, sums;
      for (uint32_t i = 0; i < 4; ++i) logits.push_back(ExpectedLogit(p, dim, i, numbers, &sums));
      for (IsaLevel level : {IsaLevel::kV3, SupportedIsaLevel()}) {
        const IsaLevel before = SetActiveIsaLevel(level);
        const uint32_t fields = 4;
        const size_t stride = fields * dim + 3;
        std::vector<float> got(4, NAN), got_sums(4 * dim, NAN), embeddings(4 * stride, 7.0f);
        std::vector<uint32_t> example(10, 99);
        FmOutputs out{got.data(),        got_sums.data(), example.data(),
                      embeddings.data(), stride,          fields};
        const float* e = numbers ? p.numeric_embedding.data() : nullptr;
        FmForward(p.x, dim, 0.25f, p.weight.data(), e, 0, 3, out);
        FmForward(p.x, dim, 0.25f, p.weight.data(), e, 3, 4, out);
        SetActiveIsaLevel(before);
        REQUIRE(SameBits(got, logits));
        REQUIRE(SameBits(got_sums, sums));
        REQUIRE(example == std::vector<uint32_t>{0, 0, 0, 2, 2, 2, 2, 2, 3, 3});
        for (uint32_t i = 0; i < 4; ++i) {
          for (size_t c = 0; c < stride; ++c) {
            const auto f = static_cast<uint32_t>(p.offsets[i] + c / dim);
            const float expected = c >= fields * dim ? 7.0f  // not ours
                                   : f < p.offsets[i + 1]
                                       ? p.rows[p.row[f] * (dim + 1) + c % dim] * p.values[f]
                                       : 0.0f;
            REQUIRE(embeddings[i * stride + c] == expected);
          }
        }
      }
    }
  }
}

TEST_CASE("factorization machine gradients, to the bit", "[ops]") {
  const std::vector<uint32_t> first = {0, 3, 5, 7, 10},
                              occurrences = {0, 5, 9, 3, 4, 1, 6, 2, 7, 8};
  const std::vector<uint32_t> example = {0, 0, 0, 2, 2, 2, 2, 2, 3, 3};
  for (uint32_t dim : {1u, 3u, 16u, 22u}) {
    const Problem p(dim);
    const uint32_t fields = 4;
    const auto g = Values(4, 6), sums = Values(4 * dim, 7), below = Values(4 * fields * dim, 8);
    for (const bool with_below : {false, true}) {
      std::vector<float> expected(4 * (dim + 1));
      for (uint32_t u = 0; u < 4; ++u) {
        for (uint32_t o = first[u]; o < first[u + 1]; ++o) {
          const uint32_t f = occurrences[o], i = example[f], slot = f - p.offsets[i];
          for (uint32_t d = 0; d <= dim; ++d) {
            const float rest = sums[i * dim + d % dim] - p.rows[u * (dim + 1) + d] * p.values[f];
            const float b = slot < fields ? below[i * fields * dim + slot * dim + d % dim] : 0.0f;
            const float term = d == dim     ? g[i] * p.values[f]
                               : with_below ? p.values[f] * std::fma(g[i], rest, b)
                                            : p.values[f] * (g[i] * rest);
            float& sum = expected[u * (dim + 1) + d];
            sum = o == first[u] ? term : sum + term;
          }
        }
      }
      for (IsaLevel level : {IsaLevel::kV3, SupportedIsaLevel()}) {
        const IsaLevel before = SetActiveIsaLevel(level);
        std::vector<float> got(expected.size(), NAN);
        FmGradientInputs in{g.data(),
                            sums.data(),
                            example.data(),
                            with_below ? below.data() : nullptr,
                            size_t{fields} * dim,
                            fields};
        FmGradients(p.x, dim, in, {first.data(), occurrences.data(), 0, 1}, got.data());
        FmGradients(p.x, dim, in, {first.data(), occurrences.data(), 1, 4}, got.data());
        SetActiveIsaLevel(before);
        REQUIRE(SameBits(got, expected));
      }
    }
  }
}

TEST_CASE("logistic loss and its derivative", "[ops]") {
  std::vector<float> logits = {0.0f, 1.5f, -2.25f, 40.0f, -40.0f, 500.0f, -500.0f};
  for (float z : Values(100, 3)) logits.push_back(8 * z);
  for (const float label : {0.0f, 1.0f}) {
    const std::vector<float> labels(logits.size(), label);
    std::vector<float> p(logits.size()), again(logits.size()), loss(p), gradient(p);
    LogisticLoss(logits.size(), logits.data(), labels.data(), p.data(), loss.data(),
                 gradient.data());
    Sigmoid(logits.size(), logits.data(), again.data());
    REQUIRE(SameBits(p, again));
    for (size_t i = 0; i < logits.size(); ++i) {
      const double z = logits[i];
      const double expected = std::max(z, 0.0) - z * label + std::log1p(std::exp(-std::abs(z)));
      REQUIRE(p[i] == Approx(1 / (1 + std::exp(-z))).epsilon(1e-6).margin(1e-37));
      REQUIRE(loss[i] == Approx(expected).epsilon(1e-6).margin(1e-37));
      REQUIRE(gradient[i] == p[i] - label);
    }
  }
}

}  // namespace
}  // namespace strata::ops
