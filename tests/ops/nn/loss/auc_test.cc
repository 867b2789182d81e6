#include "ops/nn/loss/auc.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace strata::ops {
namespace {

struct Set {
  std::vector<float> labels, predictions;
};

// n examples; predictions take `levels` values, so that few levels make many ties.
Set MakeSet(size_t n, uint32_t levels, uint64_t seed) {
  Set s;
  uint64_t x = seed * 7919 + 1;
  const auto next = [&] {
    x = x * 6364136223846793005ull + 1442695040888963407ull;
    return x >> 33;
  };
  for (size_t i = 0; i < n; ++i) {
    const double p = static_cast<double>(next() % levels) / levels;
    s.predictions.push_back(static_cast<float>(p));
    s.labels.push_back(static_cast<double>(next() % 1000) < 1000 * (0.2 + 0.5 * p) ? 1.0f : 0.0f);
  }
  return s;
}

double BruteForce(const Set& s) {
  double wins = 0, pairs = 0;
  for (size_t i = 0; i < s.labels.size(); ++i) {
    for (size_t j = 0; j < s.labels.size(); ++j) {
      if (s.labels[i] < 0.5f || s.labels[j] > 0.5f) continue;
      pairs += 1;
      wins += s.predictions[i] > s.predictions[j]    ? 1
              : s.predictions[i] == s.predictions[j] ? 0.5
                                                     : 0;
    }
  }
  return pairs == 0 ? 0.5 : wins / pairs;
}

TEST_CASE("exact AUC is the share of ordered pairs, with ties", "[ops]") {
  for (size_t n : {1, 2, 3, 10, 500, 1500}) {
    for (uint32_t levels : {1u, 2u, 7u, 300u, 1u << 24}) {
      const Set s = MakeSet(n, levels, n + levels);
      REQUIRE(Auc(s.predictions, s.labels) == Approx(BruteForce(s)).epsilon(1e-12));
    }
  }
}

TEST_CASE("exact AUC at its ends", "[ops]") {
  const std::vector<float> labels = {0, 0, 1, 1};
  REQUIRE(Auc(std::vector<float>{0.1f, 0.2f, 0.3f, 0.4f}, labels) == 1.0);
  REQUIRE(Auc(std::vector<float>{0.4f, 0.3f, 0.2f, 0.1f}, labels) == 0.0);
  REQUIRE(Auc(std::vector<float>{-0.0f, 0.0f, 0.0f, -0.0f}, labels) == 0.5);
  REQUIRE(Auc(std::vector<float>{-3.0f, -2.0f, -1.0f, 5.0f}, labels) == 1.0);
  REQUIRE(Auc(std::vector<float>{0.1f, 0.2f}, std::vector<float>{1, 1}) == 0.5);
  REQUIRE(Auc({}, {}) == 0.5);
}

TEST_CASE("nothing is defined of what a diverged model predicts", "[ops]") {
  const float nan = std::nanf("");
  const std::vector<float> labels = {0, 1, 0, 1};
  for (const std::vector<float>& scores :
       {std::vector<float>(4, nan), std::vector<float>{nan, 0.5f, 0.25f, 0.75f},
        std::vector<float>{0.5f, 0.5f, 0.25f, -nan}}) {
    CHECK(std::isnan(Auc(scores, labels)));
    CHECK(std::isnan(MeanLogloss(scores, labels)));
    CHECK(std::isnan(Calibration(scores, labels)));
  }
}

TEST_CASE("AUC does not depend on the order of examples", "[ops]") {
  Set s = MakeSet(3000, 50, 9);
  const double before = Auc(s.predictions, s.labels);
  std::reverse(s.labels.begin(), s.labels.end());
  std::reverse(s.predictions.begin(), s.predictions.end());
  REQUIRE(Auc(s.predictions, s.labels) == before);
}

TEST_CASE("mean loss and calibration", "[ops]") {
  REQUIRE(MeanLogloss({}, {}) == 0);
  REQUIRE(Calibration({}, {}) == 0);
  const std::vector<float> labels = {1, 0, 0, 1}, scores = {0.8f, 0.4f, 0.0f, 0.0f};
  const double edge = std::ldexp(1.0, -24);
  REQUIRE(MeanLogloss(scores, labels) ==
          Approx((-std::log(0.8) - std::log(0.6) - std::log(1 - edge) - std::log(edge)) / 4));
  REQUIRE(Calibration(scores, labels) == Approx(1.2 / 2));
}

}  // namespace
}  // namespace strata::ops
