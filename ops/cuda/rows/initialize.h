// New rows of a table in device memory: initial weights by key, as InitialRow (ops/initializer.h)
// computes them, and initial state, to the bit.
// Tested by tests/ops/cuda/elements_test.cc
#ifndef STRATA_OPS_CUDA_ROWS_INITIALIZE_H_
#define STRATA_OPS_CUDA_ROWS_INITIALIZE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/kernel/row_block.h"
#include "ops/initializer.h"
#include "ops/optimizer.h"

namespace strata::ops::gpu {

// All pointers in device memory.
struct InitializeTask {
  RowBlock table;             // a row's weights (dim)
  uint32_t state_offset = 0;  // floats from a row's weights to its state (StateFloats)
  uint32_t dim = 0;
  uint64_t seed = 0;
  uint32_t table_number = 0;
  uint32_t first_element = 0;        // of a row's stream
  const uint64_t* keys = nullptr;    // (rows)
  const uint32_t* row_of = nullptr;  // (rows): where each goes; kNoRow: nowhere. Null: row i
  Count rows;
};

// Asynchronous.
absl::Status Initialize(CudaApi& api, const InitializerConfig& initializer,
                        const OptimizerConfig& optimizer, const InitializeTask& task,
                        StreamHandle stream);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_ROWS_INITIALIZE_H_
