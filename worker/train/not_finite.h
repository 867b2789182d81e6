// Which features' gradients are no finite numbers, and of which fields they are.
#ifndef STRATA_WORKER_TRAIN_NOT_FINITE_H_
#define STRATA_WORKER_TRAIN_NOT_FINITE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/metrics/training_stats.h"
#include "worker/step/batch.h"

namespace strata {

// The first `most` keys, as routed, of which a float of the gradient is infinite or no number, with
// the field of their first occurrence in the batch. rows: (unique, dim of the table). Pure.
std::vector<TrainingStats::Feature> FirstNotFinite(const Batch& batch, const RoutedKeys& routed,
                                                   std::span<const uint32_t> dims,
                                                   std::span<const float> rows, size_t most);

}  // namespace strata

#endif  // STRATA_WORKER_TRAIN_NOT_FINITE_H_
