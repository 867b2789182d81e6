#include "worker/models/model_parts.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

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
  x.fields = in.batch->fields.empty() ? nullptr : in.batch->fields.data();
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

void CopyNumbers(const Batch& batch, size_t begin, size_t end, float* out, size_t stride) {
  if (batch.numeric == 0) return;
  for (size_t i = begin; i < end; ++i) {
    std::memcpy(out + i * stride, batch.dense.data() + i * batch.numeric,
                batch.numeric * sizeof(float));
  }
}

ops::TransposedProduct LinearGradients(const Batch& batch, const ExampleScratch& scratch,
                                       const ModelGradients& out) {
  ops::TransposedProduct p;
  p.rows = batch.size;
  p.m = batch.numeric;
  p.n = 1;
  p.a = batch.dense.data();
  p.lda = batch.numeric;
  p.b = scratch.gradients.data();
  p.ldb = 1;
  p.c = batch.numeric > 0 ? out.tensors[1] : nullptr;
  p.ldc = 1;
  p.column_sums = out.tensors[0];
  return p;
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

void TrainBlocks(size_t n, size_t block, ops::Parallel* parallel, PassTimes* passes,
                 const std::function<void(size_t, size_t)>& forward,
                 const std::function<void(size_t, size_t)>& backward) {
  using Clock = std::chrono::steady_clock;
  const auto nanoseconds = [](Clock::duration d) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(d).count();
  };
  ForBlocks(n, block, parallel, [&](size_t begin, size_t end) {
    const Clock::time_point from = Clock::now();
    forward(begin, end);
    const Clock::time_point between = Clock::now();
    backward(begin, end);
    if (passes == nullptr) return;
    passes->forward_ns.fetch_add(nanoseconds(between - from), std::memory_order_relaxed);
    passes->backward_ns.fetch_add(nanoseconds(Clock::now() - between), std::memory_order_relaxed);
  });
  if (passes != nullptr) passes->blocks_done = Clock::now();
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
