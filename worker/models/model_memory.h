// How much memory a model on the CPU takes for a batch, by formula, and how many lines are scored
// at a time, so that this stays bounded however wide a line is.
#ifndef STRATA_WORKER_MODELS_MODEL_MEMORY_H_
#define STRATA_WORKER_MODELS_MODEL_MEMORY_H_

#include <cstdint>

#include "ops/nn/layer_memory.h"
#include "proto/job/tables/model_tables.h"
#include "worker/step/batch.h"

namespace strata {

// A batch, as far as memory goes by it.
struct BatchExtent {
  uint64_t examples = 0;
  uint64_t features = 0;  // of all examples
  bool pooled = false;    // some field of an example has several features
};

// Bytes of a model's buffers once it has had such a batch: what its own members and those of its
// layers are sized for. Rows, gradients and the batch itself are the caller's.
struct ModelMemory {
  uint64_t batch = 0;    // grows with examples and features
  uint64_t weights = 0;  // packed weights, what threads need to themselves, and lists
  uint64_t total() const { return batch + weights; }
};
ModelMemory MemoryOfModel(const ModelTables& tables, const BatchExtent& batch, ops::Passes passes,
                          uint32_t threads);

// What evaluation and predictions score at a time: at most 4096 lines, as many as fit into
// kScoredBytes by MemoryOfModel and with their rows, and features of kScoredBytes; at least a line.
inline constexpr uint64_t kScoredBytes = uint64_t{128} << 20;
inline constexpr uint32_t kMostScoredLines = 4096;
BatchLimit ScoredAtATime(const ModelTables& tables);

// The same on a device, whose steps have memory and graphs for whole batches of training and fill
// up what has fewer examples: as many whole ones as ScoredAtATime takes lines of, at least one,
// whatever features its lines have.
BatchLimit ScoredOnDevice(const ModelTables& tables, uint32_t batch_size);

}  // namespace strata

#endif  // STRATA_WORKER_MODELS_MODEL_MEMORY_H_
