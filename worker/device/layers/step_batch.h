// What one batch's step reads and writes, all in device memory. Pointers are those of a slot of
// step.h, whose copies fill them; or they belong to a server in the same process, whose rows come
// and whose gradients go without the host (nothing here says who wrote them).
// Tested by tests/worker/device/step_test.cc
#ifndef STRATA_WORKER_DEVICE_LAYERS_STEP_BATCH_H_
#define STRATA_WORKER_DEVICE_LAYERS_STEP_BATCH_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ops/cuda/nn/embedding.h"
#include "ops/cuda/nn/field_vectors.h"
#include "ops/cuda/rows/coalesce.h"
#include "ops/cuda/rows/row_runs.h"
#include "ops/nn/sparse_examples.h"

namespace strata::device {

// Most of each that memory is for.
struct StepShape {
  uint32_t examples = 0;
  uint32_t features = 0;
  uint32_t unique = 0;
  uint32_t runs = 0;  // fields of examples, where one may have several features

  bool Holds(const StepShape& other) const {
    return other.examples <= examples && other.features <= features && other.unique <= unique &&
           other.runs <= runs;
  }
};

// What a job's steps take memory for at first: whole batches that hold `most_examples`, with one
// feature a field. Where there are more, the first such batch makes it larger.
inline StepShape FirstShape(uint32_t batch_size, uint32_t most_examples, uint32_t fields) {
  const uint32_t batch = std::max(1u, batch_size);
  const uint32_t examples = batch * std::max(1u, (most_examples + batch - 1) / batch);
  const uint32_t features = examples * std::max(1u, fields);
  return {examples, features, features, 0};
}
// A device counts in 32 bits.
inline constexpr uint64_t kMostCounted = UINT32_MAX;
// How much there is for after `now` was wanted and `old` was there: a quarter to spare.
inline uint32_t GrownTo(uint32_t old, uint32_t now) {
  return now <= old ? old : static_cast<uint32_t>(std::min(now + uint64_t{now} / 4, kMostCounted));
}

// Numbers that only the device's memory has, so that a graph serves every batch.
enum StepCount : uint32_t { kExamples = 0, kUnique, kChunks, kRuns, kZero, kStepCounts };

struct StepBatch {
  // Examples beyond those of the batch have no features, numbers of 0, and no gradient.
  uint32_t examples = 0;
  const uint32_t* counts = nullptr;  // (kStepCounts)
  ops::SparseExamples x;             // the batch's features
  const float* labels = nullptr;     // (examples, tasks); no number: the example has none
  const float* weights = nullptr;    // (examples), or null: all 1
  ops::gpu::GroupedKeys keys;        // x.row by row; keys[u] = u

  // Where fields have several features each: what they are pooled to. Null: as they are.
  const uint32_t* run_offsets = nullptr;  // (examples + 1)
  const uint32_t* run_fields = nullptr;   // (runs)
  const uint32_t* run_first = nullptr;    // (runs + 1): features of each
  const uint32_t* run_of = nullptr;       // (features)
  ops::gpu::GroupedKeys runs;             // each a key of its own
  const uint32_t* max_fields = nullptr;   // the job's (Stages), or null

  // Where tables differ in width. x has no stride then.
  const ops::gpu::RowRun* table_runs = nullptr;     // (tables + 1)
  const ops::gpu::FieldColumns* columns = nullptr;  // the job's (Stages)
  // As Batch has them: (examples, sequences).
  const uint32_t* sequence_first = nullptr;
  const uint32_t* sequence_length = nullptr;

  std::vector<float*> tensors;           // by number
  std::vector<float*> tensor_gradients;  // by number
  ops::gpu::RowSums row_gradients;       // (unique), or as `table_runs` has them
  float* predictions = nullptr;          // (examples, tasks)
  float* losses = nullptr;               // (examples, tasks)

  bool pooled() const { return run_first != nullptr; }
};

}  // namespace strata::device

#endif  // STRATA_WORKER_DEVICE_LAYERS_STEP_BATCH_H_
