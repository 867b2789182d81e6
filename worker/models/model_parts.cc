#include "worker/models/model_parts.h"

#include <algorithm>

#include "ops/coalesce.h"
#include "ops/nn/logistic.h"

namespace strata {

ops::SparseExamples ExamplesOf(const ModelInputs& in, size_t row_dim) {
  ops::SparseExamples x;
  x.offsets = in.batch->offsets.data();
  x.row = in.routed->unique_of.data();
  x.values = in.batch->values.empty() ? nullptr : in.batch->values.data();
  x.rows = in.rows;
  x.stride = row_dim;
  x.numeric = in.batch->dense.data();
  x.numeric_count = in.batch->numeric;
  return x;
}

void ExampleScratch::Resize(const Batch& batch) {
  logits.resize(batch.size);
  losses.resize(batch.size);
  gradients.resize(batch.size);
  example.resize(batch.keys.size());
}

void LogisticBlock(const Batch& batch, size_t first, size_t n, ExampleScratch* scratch,
                   float* predictions) {
  ops::LogisticLoss(n, scratch->logits.data() + first, batch.labels.data() + first,
                    predictions + first, scratch->losses.data() + first,
                    scratch->gradients.data() + first);
}

double SumLosses(const ExampleScratch& scratch, const Batch& batch) {
  double sum = 0;
  for (size_t i = 0; i < batch.size; ++i) sum += scratch.losses[i];
  return sum;
}

void ForBlocks(size_t n, size_t block, ops::Parallel* parallel,
               const std::function<void(size_t, size_t)>& body) {
  parallel->For((n + block - 1) / block,
                [&](size_t b) { body(b * block, std::min(n, (b + 1) * block)); });
}

void ForKeys(const RoutedKeys& routed, ops::Parallel* parallel,
             const std::function<void(const ops::KeyOccurrences&)>& body) {
  // Occurrences and keys of one run; enough runs to share evenly, long enough to be worth a task.
  constexpr size_t kRunLength = 4096;
  const auto unique = static_cast<uint32_t>(routed.keys.size());
  if (unique == 0) return;
  const auto parts =
      static_cast<uint32_t>((routed.occurrences.size() + unique + kRunLength - 1) / kRunLength);
  parallel->For(parts, [&](size_t part) {
    const auto p = static_cast<uint32_t>(part);
    body({routed.first.data(), routed.occurrences.data(),
          ops::CoalesceSplit(routed.first.data(), unique, parts, p),
          ops::CoalesceSplit(routed.first.data(), unique, parts, p + 1)});
  });
}

}  // namespace strata
