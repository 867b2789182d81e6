// Criteo-shaped input that is already parsed and in memory, so that training is measured alone.
#ifndef STRATA_TOOLS_BENCH_JOB_MEMORY_DATA_H_
#define STRATA_TOOLS_BENCH_JOB_MEMORY_DATA_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "proto/core/ids.h"
#include "worker/data/reading/data_access.h"

namespace strata::bench {

struct MemoryDataOptions {
  uint32_t batch_size = 4096;
  uint32_t batches = 100;     // distinct ones; steps go round them
  uint64_t ids = 10'000'000;  // over all 26 fields, shared out as in Criteo
  double zipf = 1.05;
  uint64_t seed = 1;
  uint64_t lines = 0;  // what the index says: how long a pass is
  // The first EveryIdSteps steps of lane 0 name every id once; the batches come after them.
  bool every_id_first = false;
  // Called before a step is read, on the thread that reads it; may wait.
  std::function<void(Step)> before_read;
};

// ids / (26 x batch_size), rounded up.
uint64_t EveryIdSteps(const MemoryDataOptions& options);

// 13 numeric inputs and 26 categorical fields per example, ids Zipf-distributed per field.
std::unique_ptr<DataAccess> MakeMemoryData(const MemoryDataOptions& options);

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_JOB_MEMORY_DATA_H_
