#include "ops/nn/loss/weighted_metrics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

namespace strata::ops {
namespace {

struct Scored {
  float score;
  bool positive;
  uint64_t units;
};

// Sorts them.
std::optional<double> AucOf(std::vector<Scored>& all) {
  std::sort(all.begin(), all.end(),
            [](const Scored& a, const Scored& b) { return a.score < b.score; });
  // Twice the weight of the ordered pairs: a whole number, so that nothing is rounded before the
  // end. Halves of 62 bits keep the products within 128.
  unsigned __int128 total = 0;
  for (const Scored& s : all) total += s.units;
  int shift = 0;
  while ((total >> shift) >> 62 != 0) ++shift;
  unsigned __int128 doubled = 0;
  uint64_t positives = 0, negatives = 0;
  for (size_t i = 0; i < all.size();) {
    uint64_t p = 0, n = 0;
    size_t j = i;
    for (; j < all.size() && all[j].score == all[i].score; ++j) {
      (all[j].positive ? p : n) += all[j].units >> shift;
    }
    doubled += static_cast<unsigned __int128>(p) * (2 * negatives + n);
    positives += p;
    negatives += n;
    i = j;
  }
  if (positives == 0 || negatives == 0) return std::nullopt;
  return static_cast<double>(doubled) / 2 /
         (static_cast<double>(positives) * static_cast<double>(negatives));
}

// What weighs nothing may have any score: neither the sort nor the search for ties would end well
// with numbers that equal nothing.
Scored ScoredOf(const WeightedExamples& x, size_t i) {
  return {x.unit(i) == 0 ? 0.0f : x.scores[i], x.labels[i] > 0.5f, x.unit(i)};
}

bool AllNumbers(const WeightedExamples& x) {
  for (size_t i = 0; i < x.scores.size(); ++i) {
    if (x.unit(i) > 0 && std::isnan(x.scores[i])) return false;
  }
  return true;
}

}  // namespace

std::optional<double> WeightedAuc(const WeightedExamples& x) {
  if (!AllNumbers(x)) return std::nullopt;
  std::vector<Scored> all(x.scores.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = ScoredOf(x, i);
  return AucOf(all);
}

std::optional<double> GroupedAuc(const WeightedExamples& x, std::span<const uint64_t> groups,
                                 const std::vector<bool>& without) {
  if (!AllNumbers(x)) return std::nullopt;
  const auto group_of = [&](size_t i) {
    const bool some = without.empty() || !without[i];
    return std::pair<bool, uint64_t>(some, some ? groups[i] : 0);
  };
  std::vector<size_t> order(groups.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return group_of(a) != group_of(b) ? group_of(a) < group_of(b) : a < b;
  });
  double sum = 0, weight = 0;
  std::vector<Scored> one;
  for (size_t i = 0; i < order.size();) {
    one.clear();
    double of_group = 0;
    const auto group = group_of(order[i]);
    for (; i < order.size() && group_of(order[i]) == group; ++i) {
      one.push_back(ScoredOf(x, order[i]));
      of_group += static_cast<double>(one.back().units);
    }
    const std::optional<double> auc = AucOf(one);
    if (!auc) continue;
    sum += of_group * *auc;
    weight += of_group;
  }
  if (weight == 0) return std::nullopt;
  return sum / weight;
}

WeightedSums SumExamples(const WeightedExamples& x) {
  WeightedSums sums;
  for (size_t i = 0; i < x.scores.size(); ++i) {
    const double w = static_cast<double>(x.unit(i)), y = x.labels[i], score = x.scores[i];
    if (w == 0) continue;
    const double p = std::clamp(score, 0x1p-24, 1 - 0x1p-24);  // NaN stays NaN
    sums.weight += w;
    sums.label += w * y;
    sums.prediction += w * score;
    sums.logloss -= w * std::log(y > 0.5 ? p : 1 - p);
    sums.squared += w * (score - y) * (score - y);
    sums.absolute += w * std::fabs(score - y);
  }
  return sums;
}

}  // namespace strata::ops
