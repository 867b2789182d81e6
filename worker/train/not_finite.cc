#include "worker/train/not_finite.h"

#include <algorithm>
#include <cmath>

#include "worker/step/key_runs.h"

namespace strata {
namespace {

uint32_t FieldOf(const Batch& batch, uint32_t feature) {
  if (!batch.fields.empty()) return batch.fields[feature];
  const auto after = std::upper_bound(batch.offsets.begin(), batch.offsets.end(), feature);
  return feature - *(after - 1);
}

}  // namespace

std::vector<TrainingStats::Feature> FirstNotFinite(const Batch& batch, const RoutedKeys& routed,
                                                   std::span<const uint32_t> dims,
                                                   std::span<const float> rows, size_t most) {
  std::vector<TrainingStats::Feature> found;
  ForRuns(routed.runs, dims, [&](const KeyRun& run, size_t begin) {
    const size_t dim = dims[run.table];
    for (size_t u = run.first; u < run.end() && found.size() < most; ++u, begin += dim) {
      const std::span<const float> row = rows.subspan(begin, dim);
      if (std::all_of(row.begin(), row.end(), [](float x) { return std::isfinite(x); })) continue;
      found.push_back(
          {routed.keys[u], FieldOf(batch, routed.occurrences[routed.first[u]]), run.table});
    }
  });
  return found;
}

}  // namespace strata
