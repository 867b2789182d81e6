// Quality of binary predictions. A model that has diverged may predict what is no number: then
// nothing is defined, and all of these are NaN.
#ifndef STRATA_OPS_NN_LOSS_AUC_H_
#define STRATA_OPS_NN_LOSS_AUC_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace strata::ops {

// Area under the ROC curve, exact: the share of (positive, negative) pairs in which the positive is
// scored higher, ties counting one half (Mann and Whitney, 1947; ranks of ties are averaged).
// scores, labels: (n); a label above 0.5 is positive. 0.5 where one class is missing. O(n log n)
// time, 8 bytes of memory per example. The order of examples does not matter, to the bit.
double Auc(std::span<const float> scores, std::span<const float> labels);

// Mean of -ln p (positives) and -ln (1 - p) (negatives), in double; p is held within
// [2^-24, 1 - 2^-24], so that one wrong certainty does not make the mean infinite. 0 for n = 0.
double MeanLogloss(std::span<const float> probabilities, std::span<const float> labels);

// Mean prediction / mean label; 0 where no label is positive.
double Calibration(std::span<const float> probabilities, std::span<const float> labels);

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_LOSS_AUC_H_
