// What the models share: the view of a batch that kernels take, and the logistic output.
// Tested by tests/worker/models/models_test.cc
#ifndef STRATA_WORKER_MODELS_MODEL_PARTS_H_
#define STRATA_WORKER_MODELS_MODEL_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "ops/coalesce_sum.h"
#include "ops/nn/gemm.h"
#include "ops/nn/sparse_examples.h"
#include "ops/parallel.h"
#include "worker/step/model.h"

namespace strata {

// The batch of `in` with rows of `row_dim` floats. Valid as long as in's arrays.
ops::SparseExamples ExamplesOf(const ModelInputs& in, size_t row_dim);

// Values by example, and which example each feature belongs to; reused from batch to batch.
struct ExampleScratch {
  std::vector<float> logits, losses, gradients;  // (examples)
  std::vector<uint32_t> example;                 // (features)
  void Resize(const Batch& batch);
};

// predictions, losses and gradients of examples first .. first + n - 1 from their logits.
void LogisticBlock(const Batch& batch, size_t first, size_t n, ExampleScratch* scratch,
                   float* predictions);

// Copies the numbers of examples begin .. end - 1 to out (examples, stride).
void CopyNumbers(const Batch& batch, size_t begin, size_t end, float* out, size_t stride);

// The product that gives the gradients of the bias (tensor 0) and of the numbers' weights (tensor
// 1, where there are numbers): numbers times the logits' gradients, and their sum.
ops::TransposedProduct LinearGradients(const Batch& batch, const ExampleScratch& scratch,
                                       const ModelGradients& out);

// Sum of the losses of a batch, ascending, in double.
double SumLosses(const ExampleScratch& scratch, const Batch& batch);

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

}  // namespace strata

#endif  // STRATA_WORKER_MODELS_MODEL_PARTS_H_
