#include "ops/nn/loss/auc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace strata::ops {
namespace {

struct Scored {
  float score;
  bool positive;
};

constexpr double kNotDefined = std::numeric_limits<double>::quiet_NaN();

bool AllNumbers(std::span<const float> values) {
  return std::none_of(values.begin(), values.end(), [](float x) { return std::isnan(x); });
}

}  // namespace

double Auc(std::span<const float> scores, std::span<const float> labels) {
  // Neither the sort nor the search for ties would end well with numbers that equal nothing.
  if (!AllNumbers(scores)) return kNotDefined;
  std::vector<Scored> all(scores.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = {scores[i], labels[i] > 0.5f};
  std::sort(all.begin(), all.end(),
            [](const Scored& a, const Scored& b) { return a.score < b.score; });
  // Twice the number of ordered pairs: an integer, so that nothing is rounded before the end.
  unsigned __int128 doubled = 0;
  uint64_t positives = 0, negatives = 0;
  for (size_t i = 0; i < all.size();) {
    uint64_t p = 0, n = 0;
    size_t j = i;
    for (; j < all.size() && all[j].score == all[i].score; ++j) ++(all[j].positive ? p : n);
    doubled += static_cast<unsigned __int128>(p) * (2 * negatives + n);
    positives += p;
    negatives += n;
    i = j;
  }
  if (positives == 0 || negatives == 0) return 0.5;
  return static_cast<double>(doubled) / 2 /
         (static_cast<double>(positives) * static_cast<double>(negatives));
}

double MeanLogloss(std::span<const float> probabilities, std::span<const float> labels) {
  if (probabilities.empty()) return 0;
  if (!AllNumbers(probabilities)) return kNotDefined;
  double sum = 0;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    const double p = std::clamp(static_cast<double>(probabilities[i]), 0x1p-24, 1 - 0x1p-24);
    sum -= std::log(labels[i] > 0.5f ? p : 1 - p);
  }
  return sum / static_cast<double>(probabilities.size());
}

double Calibration(std::span<const float> probabilities, std::span<const float> labels) {
  if (!AllNumbers(probabilities)) return kNotDefined;
  double predicted = 0, actual = 0;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    predicted += probabilities[i];
    actual += labels[i] > 0.5f ? 1 : 0;
  }
  return actual == 0 ? 0 : predicted / actual;
}

}  // namespace strata::ops
