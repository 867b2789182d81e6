#include "worker/models/model_parts.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "ops/coalesce.h"
#include "ops/nn/fm.h"
#include "ops/nn/loss/logistic.h"
#include "worker/step/task_losses.h"

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

ExampleScratch::ExampleScratch(const ModelTables& tables)
    : losses_(LossesOf(tables)), plain_(tables.plain()) {}

void ExampleScratch::Resize(const Batch& batch) {
  examples_ = batch.size;
  const size_t all = examples_ * tasks();
  ResizeExactly(all, &logits_);
  ResizeExactly(all, &loss_);
  ResizeExactly(all, &gradients_);
  if (tasks() > 1) ResizeExactly(all, &by_example_);
  ResizeExactly(batch.keys.size(), &example);
  weighted_ = !batch.weights.empty();
}

void ExampleScratch::Train(const Batch& batch, size_t first, size_t n, float* predictions) {
  if (plain_ && !weighted_) {
    ops::LogisticLoss(n, logits_.data() + first, batch.labels.data() + first, predictions + first,
                      loss_.data() + first, gradients_.data() + first);
    return;
  }
  for (size_t t = 0; t < tasks(); ++t) {
    ops::TaskExamples x;
    x.n = n;
    x.sums = logits(t) + first;
    x.labels = batch.labels.data() + first * tasks() + t;
    x.label_stride = tasks();
    x.weights = weighted_ ? batch.weights.data() + first : nullptr;
    x.weight_scale = 1.0f / kWeightUnit;
    ops::TaskLosses(losses_[t], x, predictions + first * tasks() + t, tasks(),
                    loss_.data() + t * examples_ + first,
                    gradients_.data() + t * examples_ + first);
    if (tasks() == 1) return;
    for (size_t i = first; i < first + n; ++i) by_example_[i * tasks() + t] = gradients(t)[i];
  }
}

void ExampleScratch::Predict(size_t first, size_t n, float* predictions) {
  if (plain_) return ops::Sigmoid(n, logits_.data() + first, predictions + first);
  for (size_t t = 0; t < tasks(); ++t) {
    ops::TaskPredictions(losses_[t], n, logits(t) + first, predictions + first * tasks() + t,
                         tasks());
  }
}

double ExampleScratch::SumLosses() const {
  double sum = 0;
  for (const float loss : loss_) sum += loss;
  return sum;
}

void LinearHeads::Prepare(const ModelInputs& in) {
  bias_ = in.tensors[0];
  numeric_weight_ = numeric_ > 0 ? in.tensors[1] : nullptr;
  if (tasks_ == 1 || numeric_ == 0) return;
  by_task_.resize(size_t{tasks_} * numeric_);
  for (size_t t = 0; t < tasks_; ++t) {
    for (size_t j = 0; j < numeric_; ++j) {
      by_task_[t * numeric_ + j] = numeric_weight_[j * tasks_ + t];
    }
  }
}

const float* LinearHeads::numeric_weight(size_t task) const {
  return tasks_ == 1 || numeric_ == 0 ? numeric_weight_ : by_task_.data() + task * numeric_;
}

void LinearHeads::Forward(const ops::SparseExamples& x, size_t begin, size_t end,
                          ExampleScratch* scratch, uint32_t* example) const {
  for (uint32_t t = 0; t < tasks_; ++t) {
    ops::LinearForward(x, column_ + t, bias(t), numeric_weight(t), static_cast<uint32_t>(begin),
                       static_cast<uint32_t>(end), scratch->logits(t), t == 0 ? example : nullptr);
  }
}

void LinearHeads::RowGradients(const ops::SparseExamples& x, const ops::KeyOccurrences& keys,
                               const ExampleScratch& scratch, float* rows) const {
  for (uint32_t t = 0; t < tasks_; ++t) {
    ops::CoalesceScaled(keys, scratch.example.data(), scratch.gradients(t), x.values,
                        rows + column_ + t, x.stride);
  }
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
  p.n = scratch.tasks();
  p.a = batch.dense.data();
  p.lda = batch.numeric;
  p.b = scratch.gradients();
  p.ldb = scratch.tasks();
  p.c = batch.numeric > 0 ? out.tensors[1] : nullptr;
  p.ldc = scratch.tasks();
  p.column_sums = out.tensors[0];
  return p;
}

void TakeLogits(const ops::Mlp& layers, size_t begin, size_t end, ExampleScratch* scratch) {
  for (size_t t = 0; t < scratch->tasks(); ++t) {
    float* const logits = scratch->logits(t);
    for (size_t i = begin; i < end; ++i) logits[i] = layers.output(i)[t];
  }
}

void GiveGradients(const ExampleScratch& scratch, size_t begin, size_t end, ops::Mlp* layers) {
  for (size_t t = 0; t < scratch.tasks(); ++t) {
    const float* const gradients = scratch.gradients(t);
    for (size_t i = begin; i < end; ++i) layers->output_gradient(i)[t] = gradients[i];
  }
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
  ForKeysOf(routed, {0, 0, routed.keys.size()}, parallel, body);
}

void ForKeysOf(const RoutedKeys& routed, const KeyRun& run, ops::Parallel* parallel,
               const std::function<void(const ops::KeyOccurrences&)>& body) {
  // Occurrences and keys of one run; enough runs to share evenly, long enough to be worth a task.
  constexpr size_t kRunLength = 4096;
  const auto unique = static_cast<uint32_t>(run.count);
  if (unique == 0) return;
  const uint32_t* const first = routed.first.data() + run.first;
  const size_t occurrences = first[unique] - first[0];
  const auto parts = static_cast<uint32_t>((occurrences + unique + kRunLength - 1) / kRunLength);
  parallel->For(parts, [&](size_t part) {
    const auto p = static_cast<uint32_t>(part);
    body({first, routed.occurrences.data(), ops::CoalesceSplit(first, unique, parts, p),
          ops::CoalesceSplit(first, unique, parts, p + 1)});
  });
}

}  // namespace strata
