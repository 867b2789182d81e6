// What the models share: the view of a batch that kernels take, linear terms, and the outputs.
// Tested by tests/worker/models/models_test.cc
#ifndef STRATA_WORKER_MODELS_MODEL_PARTS_H_
#define STRATA_WORKER_MODELS_MODEL_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "ops/coalesce_sum.h"
#include "ops/nn/gemm.h"
#include "ops/nn/loss/losses.h"
#include "ops/nn/mlp.h"
#include "ops/nn/sparse_examples.h"
#include "ops/parallel.h"
#include "proto/job/tables/model_tables.h"
#include "worker/step/key_runs.h"
#include "worker/step/model.h"

namespace strata {

// Resizes to n; what was there is lost where that takes more memory. Takes it for n alone, where
// resize would double what there was: batches differ in their features, and memory is told by the
// largest (model_memory.h).
template <typename T>
void ResizeExactly(size_t n, std::vector<T>* v) {
  if (n > v->capacity()) {
    *v = std::vector<T>();
    v->reserve(n);
  }
  v->resize(n);
}

// The batch of `in` with rows of `row_dim` floats. Valid as long as in's arrays.
ops::SparseExamples ExamplesOf(const ModelInputs& in, size_t row_dim);

// Values by task and example, and which example each feature belongs to; reused from batch to
// batch. Gradients are of the losses' sum, with the tasks' weights and in units of the lines'.
class ExampleScratch {
 public:
  explicit ExampleScratch(const ModelTables& tables);

  void Resize(const Batch& batch);

  size_t tasks() const { return losses_.size(); }
  float* logits(size_t task) { return logits_.data() + task * examples_; }  // (examples)
  const float* gradients(size_t task) const { return gradients_.data() + task * examples_; }
  const float* gradients() const { return by_example_.empty() ? gradients(0) : by_example_.data(); }

  // predictions (examples, tasks), losses and gradients of examples first .. first + n - 1 from
  // their logits. `predictions` begins at example 0.
  void Train(const Batch& batch, size_t first, size_t n, float* predictions);
  // Their predictions alone.
  void Predict(size_t first, size_t n, float* predictions);
  // Sum of the losses of a batch, ascending, in double.
  double SumLosses() const;

  std::vector<uint32_t> example;  // (features)

 private:
  const std::vector<ops::Loss> losses_;  // by task
  const bool plain_;
  bool weighted_ = false;  // the batch
  size_t examples_ = 0;
  std::vector<float> logits_, loss_, gradients_;  // (tasks, examples)
  std::vector<float> by_example_;                 // (examples, tasks): gradients; empty: one task
};

// Copies the numbers of examples begin .. end - 1 to out (examples, stride).
void CopyNumbers(const Batch& batch, size_t begin, size_t end, float* out, size_t stride);

// The linear terms of all tasks: biases (tensor 0), weights of numbers (tensor 1, where there are
// numbers), and of features, which stand at columns of rows, task by task.
class LinearHeads {
 public:
  LinearHeads(const ModelTables& tables, uint32_t column)
      : numeric_(tables.numeric), tasks_(tables.task_count()), column_(column) {}

  void Prepare(const ModelInputs& in);
  float bias(size_t task) const { return bias_[task]; }
  const float* numeric_weight(size_t task) const;  // (numeric), or null
  // The logits of examples begin .. end - 1; `example` as in LinearForward.
  void Forward(const ops::SparseExamples& x, size_t begin, size_t end, ExampleScratch* scratch,
               uint32_t* example) const;
  // Gradients of the rows' weights.
  void RowGradients(const ops::SparseExamples& x, const ops::KeyOccurrences& keys,
                    const ExampleScratch& scratch, float* rows) const;

 private:
  const uint32_t numeric_, tasks_, column_;
  const float* bias_ = nullptr;
  const float* numeric_weight_ = nullptr;  // (numeric, tasks)
  std::vector<float> by_task_;             // (tasks, numeric), where tasks are several
};

// The product that gives the gradients of the biases (tensor 0) and of the numbers' weights (tensor
// 1, where there are numbers): numbers times the logits' gradients, and their sums.
ops::TransposedProduct LinearGradients(const Batch& batch, const ExampleScratch& scratch,
                                       const ModelGradients& out);

// Between the outputs of `layers`, one for each task, and the scratch, of examples begin .. end
// - 1.
void TakeLogits(const ops::Mlp& layers, size_t begin, size_t end, ExampleScratch* scratch);
void GiveGradients(const ExampleScratch& scratch, size_t begin, size_t end, ops::Mlp* layers);

// Calls body(begin, end) for blocks of `block` examples that cover n.
void ForBlocks(size_t n, size_t block, ops::Parallel* parallel,
               const std::function<void(size_t, size_t)>& body);

// The blocks of a training step: forward(begin, end), which ends with the loss, then
// backward(begin, end), with their times in `passes` unless that is null.
void TrainBlocks(size_t n, size_t block, ops::Parallel* parallel, PassTimes* passes,
                 const std::function<void(size_t, size_t)>& forward,
                 const std::function<void(size_t, size_t)>& backward);

// Calls body for runs of unique keys of about equal work.
void ForKeys(const RoutedKeys& routed, ops::Parallel* parallel,
             const std::function<void(const ops::KeyOccurrences&)>& body);
// The same of one table's keys, which count from 0 there.
void ForKeysOf(const RoutedKeys& routed, const KeyRun& run, ops::Parallel* parallel,
               const std::function<void(const ops::KeyOccurrences&)>& body);

}  // namespace strata

#endif  // STRATA_WORKER_MODELS_MODEL_PARTS_H_
