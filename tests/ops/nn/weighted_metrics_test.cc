// Weighted metrics against brute force, and against scikit-learn where it is installed.
#include "ops/nn/weighted_metrics.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "ops/nn/auc.h"
#include "tests/skip.h"
#include "tests/temp_folder.h"

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

TEST_CASE("predictions that are no number", "[ops]") {
  const std::vector<float> scores = {NAN, 0.5f}, labels = {1, 0};
  CHECK(*WeightedAuc({scores, labels, {}}) == 0);
  const WeightedSums sums = SumExamples({scores, labels, {}});
  CHECK(sums.prediction == 0.5);
  CHECK(sums.logloss == Approx(-std::log(0x1p-24) - std::log(0.5)));
}

// What scikit-learn makes of the same examples, by name; empty: it is not installed.
std::map<std::string, double> ScikitLearn(const Set& s) {
  const TempFolder folder;
  const std::string data = folder.path() + "/examples", code = folder.path() + "/metrics.py";
  const std::string answer = folder.path() + "/answer";
  std::ofstream out(data);
  out << std::setprecision(17);
  for (size_t i = 0; i < s.scores.size(); ++i) {
    out << static_cast<double>(s.scores[i]) << ' ' << s.labels[i] << ' ' << s.units[i] << ' '
        << s.groups[i] << '\n';
  }
  out.close();
  std::ofstream(code) << R"(import sys
try:
    import numpy as np
    from sklearn import metrics as m
except ImportError:
    sys.exit(3)
p, y, w, g = np.loadtxt(sys.argv[1], dtype=np.float64).T
print("auc", repr(float(m.roc_auc_score(y, p, sample_weight=w))))
print("logloss", repr(float(m.log_loss(y, p, sample_weight=w))))
print("mse", repr(float(m.mean_squared_error(y, p, sample_weight=w))))
print("mae", repr(float(m.mean_absolute_error(y, p, sample_weight=w))))
a = b = 0.0
for k in np.unique(g):
    i = g == k
    if len(np.unique(y[i][w[i] > 0])) < 2:
        continue
    a += w[i].sum() * m.roc_auc_score(y[i], p[i], sample_weight=w[i])
    b += w[i].sum()
print("gauc", repr(float(a / b)))
)";
  const char* python = std::getenv("STRATA_PYTHON");
  const std::string command =
      std::string(python != nullptr && *python != '\0' ? python : "python3") + " " + code + " " +
      data + " > " + answer + " 2>&1";
  std::map<std::string, double> values;
  if (std::system(command.c_str()) != 0) return values;
  std::ifstream in(answer);
  std::string name;
  for (double value = 0; in >> name >> value;) values[name] = value;
  return values;
}

TEST_CASE("weighted metrics are scikit-learn's", "[ops]") {
  const Set s = MakeSet(2000, 400, 11);
  const auto expected = ScikitLearn(s);
  if (expected.empty())
    STRATA_SKIP("needs scikit-learn (STRATA_PYTHON names a Python that has it)");
  REQUIRE(expected.size() == 5);
  const WeightedSums sums = SumExamples(s.Examples());
  const auto near = [](double value) { return Approx(value).epsilon(1e-9).margin(0); };
  CHECK(*WeightedAuc(s.Examples()) == near(expected.at("auc")));
  CHECK(*GroupedAuc(s.Examples(), s.groups) == near(expected.at("gauc")));
  CHECK(sums.logloss / sums.weight == near(expected.at("logloss")));
  CHECK(sums.squared / sums.weight == near(expected.at("mse")));
  CHECK(sums.absolute / sums.weight == near(expected.at("mae")));
}

}  // namespace
}  // namespace strata::ops
