#include "worker/train/not_finite.h"

#include <algorithm>
#include <cmath>

namespace strata {
namespace {

uint32_t FieldOf(const Batch& batch, uint32_t feature) {
  if (!batch.fields.empty()) return batch.fields[feature];
  const auto after = std::upper_bound(batch.offsets.begin(), batch.offsets.end(), feature);
  return feature - *(after - 1);
}

}  // namespace

std::vector<TrainingStats::Feature> FirstNotFinite(const Batch& batch, const RoutedKeys& routed,
                                                   std::span<const float> rows, size_t most) {
  std::vector<TrainingStats::Feature> found;
  const size_t keys = routed.keys.size();
  const size_t dim = keys == 0 ? 0 : rows.size() / keys;
  for (size_t u = 0; u < keys && found.size() < most; ++u) {
    const std::span<const float> row = rows.subspan(u * dim, dim);
    if (std::all_of(row.begin(), row.end(), [](float x) { return std::isfinite(x); })) continue;
    found.push_back({routed.keys[u], FieldOf(batch, routed.occurrences[routed.first[u]])});
  }
  return found;
}

}  // namespace strata
