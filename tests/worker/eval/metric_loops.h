// Metrics of lines as loops over them and over pairs of them, in double.
#ifndef STRATA_TESTS_WORKER_EVAL_METRIC_LOOPS_H_
#define STRATA_TESTS_WORKER_EVAL_METRIC_LOOPS_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace strata::testing {

// A line of one task.
struct Line {
  double label, score, weight;
  uint64_t group;
};

// The weighted share of pairs that are in order; none without a pair.
inline std::optional<double> AucOfPairs(const std::vector<Line>& lines) {
  double wins = 0, pairs = 0;
  for (const Line& a : lines) {
    for (const Line& b : lines) {
      if (a.label != 1 || b.label != 0) continue;
      const double w = a.weight * b.weight;
      pairs += w;
      wins += a.score > b.score ? w : a.score == b.score ? w / 2 : 0;
    }
  }
  if (pairs == 0) return std::nullopt;
  return wins / pairs;
}

// The mean over groups with a pair, by their weights.
inline double GaucOfPairs(const std::vector<Line>& lines, uint64_t groups) {
  double sum = 0, weight = 0;
  for (uint64_t g = 0; g < groups; ++g) {
    std::vector<Line> some;
    double of = 0;
    for (const Line& l : lines) {
      if (l.group != g) continue;
      some.push_back(l);
      of += l.weight;
    }
    const auto auc = AucOfPairs(some);
    if (!auc) continue;
    sum += of * *auc;
    weight += of;
  }
  return sum / weight;
}

// The weighted mean of what `of` says of each line.
template <typename Of>
double MeanOf(const std::vector<Line>& lines, Of of) {
  double sum = 0, weight = 0;
  for (const Line& l : lines) {
    sum += l.weight * of(l);
    weight += l.weight;
  }
  return sum / weight;
}

}  // namespace strata::testing

#endif  // STRATA_TESTS_WORKER_EVAL_METRIC_LOOPS_H_
