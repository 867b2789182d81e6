// Weighted metrics against brute force.
#include "ops/nn/loss/weighted_metrics.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "ops/nn/loss/auc.h"

namespace strata::ops {
namespace {

struct Set {
  std::vector<float> scores, labels;
  std::vector<uint64_t> units, groups;
  WeightedExamples Examples() const { return {scores, labels, units}; }
};

Set MakeSet(size_t n, uint32_t levels, uint64_t seed) {
  Set s;
  uint64_t x = seed * 7919 + 1;
  const auto next = [&] {
    x = x * 6364136223846793005ull + 1442695040888963407ull;
    return x >> 33;
  };
  for (size_t i = 0; i < n; ++i) {
    const double p = (static_cast<double>(next() % levels) + 0.5) / levels;
    s.scores.push_back(static_cast<float>(p));
    s.labels.push_back(static_cast<double>(next() % 1000) < 1000 * (0.2 + 0.5 * p) ? 1.0f : 0.0f);
    s.units.push_back(next() % 5 == 0 ? 0 : next() % (1 << 26));
    s.groups.push_back(next() % 9);
  }
  return s;
}

// None where a class weighs nothing.
double BruteForce(const Set& s, int64_t group, double* weight = nullptr) {
  double wins = 0, pairs = 0, all = 0;
  const auto in = [&](size_t i) {
    return group < 0 || s.groups[i] == static_cast<uint64_t>(group);
  };
  for (size_t i = 0; i < s.labels.size(); ++i) {
    if (!in(i)) continue;
    all += static_cast<double>(s.units[i]);
    for (size_t j = 0; j < s.labels.size(); ++j) {
      if (!in(j) || s.labels[i] < 0.5f || s.labels[j] > 0.5f) continue;
      const double w = static_cast<double>(s.units[i]) * static_cast<double>(s.units[j]);
      pairs += w;
      wins += w * (s.scores[i] > s.scores[j] ? 1 : s.scores[i] == s.scores[j] ? 0.5 : 0);
    }
  }
  if (weight != nullptr) *weight = all;
  return pairs == 0 ? -1 : wins / pairs;
}

TEST_CASE("weighted AUC is the share of the pairs' weights", "[ops]") {
  for (size_t n : {1, 2, 3, 10, 300}) {
    for (uint32_t levels : {1u, 2u, 7u, 1u << 24}) {
      Set s = MakeSet(n, levels, n + levels);
      CHECK(WeightedAuc(s.Examples()).value_or(-1) == Approx(BruteForce(s, -1)).epsilon(1e-12));
      double sum = 0, of = 0;
      for (int64_t g = 0; g < 9; ++g) {
        double weight = 0;
        const double auc = BruteForce(s, g, &weight);
        if (auc < 0) continue;
        sum += auc * weight;
        of += weight;
      }
      CHECK(GroupedAuc(s.Examples(), s.groups).value_or(-1) ==
            Approx(of == 0 ? -1 : sum / of).epsilon(1e-12));
      // A group may as well have no number; that of the others does not matter then.
      std::vector<bool> without;
      std::vector<uint64_t> others = s.groups;
      for (size_t i = 0; i < n; ++i) {
        without.push_back(s.groups[i] == 8);
        if (without[i]) others[i] = i;
      }
      CHECK(GroupedAuc(s.Examples(), others, without).value_or(-1) ==
            Approx(of == 0 ? -1 : sum / of).epsilon(1e-12));
      const double before = WeightedAuc(s.Examples()).value_or(-1);
      for (auto* v : {&s.scores, &s.labels}) std::reverse(v->begin(), v->end());
      std::reverse(s.units.begin(), s.units.end());
      CHECK(WeightedAuc(s.Examples()).value_or(-1) == before);
      s.units.clear();
      const auto plain = WeightedAuc(s.Examples());
      CHECK(plain.value_or(0.5) == Auc(s.scores, s.labels));
    }
  }
}

TEST_CASE("sums of weights that need more than 62 bits give an AUC too", "[ops]") {
  Set s = MakeSet(300, 50, 3);
  const double before = *WeightedAuc(s.Examples());
  for (uint64_t& units : s.units) units <<= 37;  // 2^71 in all
  CHECK(*WeightedAuc(s.Examples()) == Approx(before).epsilon(1e-12));
}

TEST_CASE("nothing is defined where a prediction that weighs something is no number", "[ops]") {
  const std::vector<float> scores = {0.75f, NAN, 0.25f}, labels = {1, 1, 0};
  const std::vector<uint64_t> groups = {0, 1, 0};
  CHECK_FALSE(WeightedAuc({scores, labels, {}}));
  CHECK_FALSE(GroupedAuc({scores, labels, {}}, groups));
  const WeightedSums sums = SumExamples({scores, labels, {}});
  CHECK(sums.weight == 3);
  CHECK(sums.label == 2);
  for (const double sum : {sums.prediction, sums.logloss, sums.squared, sums.absolute}) {
    CHECK(std::isnan(sum));
  }
  const std::vector<uint64_t> units = {1, 0, 1};
  const WeightedExamples weighted = {scores, labels, units};
  CHECK(WeightedAuc(weighted) == 1);
  CHECK(GroupedAuc(weighted, groups) == 1);
  CHECK(SumExamples(weighted).prediction == 1);
  CHECK(SumExamples(weighted).logloss == Approx(-2 * std::log(0.75)));
}

}  // namespace
}  // namespace strata::ops
