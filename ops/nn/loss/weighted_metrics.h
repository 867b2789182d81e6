// Quality of predictions whose examples have weights. Where one that weighs something is no number,
// nothing is defined (as in auc.h). Weights are whole numbers of some unit, so that sums of them
// are exact; sums of products are in double, in the examples' order.
#ifndef STRATA_OPS_NN_LOSS_WEIGHTED_METRICS_H_
#define STRATA_OPS_NN_LOSS_WEIGHTED_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace strata::ops {

// scores, labels: (n). units: (n), or empty: all weigh 1.
struct WeightedExamples {
  std::span<const float> scores;
  std::span<const float> labels;
  std::span<const uint64_t> units;

  uint64_t unit(size_t i) const { return units.empty() ? 1 : units[i]; }
};

// Area under the ROC curve: of all pairs of a positive (label above 0.5) and a negative, each of
// the product of their weights, the share in which the positive is scored higher, ties by half. The
// order of examples does not matter, to the bit. None where one class weighs nothing, or a
// prediction is no number. O(n log n).
std::optional<double> WeightedAuc(const WeightedExamples& x);

// The same within each group of examples, and the mean of the groups that have both classes,
// weighted by the sum of their examples' weights (Zhu et al., KDD 2017). groups: (n). without: (n),
// or empty; examples for which it is true are one group, whatever `groups` says of them. None where
// no group has both, or a prediction is no number. O(n log n).
std::optional<double> GroupedAuc(const WeightedExamples& x, std::span<const uint64_t> groups,
                                 const std::vector<bool>& without = {});

// Weighted sums over all examples, of which the means are made. A prediction that is no number
// makes those of predictions NaN.
struct WeightedSums {
  double weight = 0, label = 0, prediction = 0;
  double logloss = 0;  // as MeanLogloss, labels above 0.5 being positive
  double squared = 0, absolute = 0;
};
WeightedSums SumExamples(const WeightedExamples& x);

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_LOSS_WEIGHTED_METRICS_H_
