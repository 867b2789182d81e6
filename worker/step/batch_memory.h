// How much memory a batch and what routes it take, by formula.
#ifndef STRATA_WORKER_STEP_BATCH_MEMORY_H_
#define STRATA_WORKER_STEP_BATCH_MEMORY_H_

#include <cstdint>

#include "proto/job/tables/model_tables.h"

namespace strata {

// The most that each of some batches has. `keys` are the distinct ones.
struct BatchCounts {
  uint64_t examples = 0;
  uint64_t features = 0;
  uint64_t keys = 0;
};

// At most, of one Batch that has held these batches in any order: its vectors double as they grow,
// so each may have room for twice as much as it ever held.
//   2 x (features x (key 8 + value 4 + field 4) + examples x 4 x (tasks + numbers + weight + offset
//   + 2 sequences))
uint64_t MemoryOfBatch(const ModelTables& tables, const BatchCounts& most);

// The same of one RoutedKeys: 2 x (8 x features + 16 x keys) + 4 x keys, as Batch's vectors.
uint64_t MemoryOfRoutedKeys(const BatchCounts& most);

// The same of one Router's scratch: 16 x (2 x features, rounded up to a power of two) + 2 x 44 x
// keys, and 2 x 16 x features where tables are several.
uint64_t MemoryOfRouter(const ModelTables& tables, const BatchCounts& most);

}  // namespace strata

#endif  // STRATA_WORKER_STEP_BATCH_MEMORY_H_
