// Updates rows of a table in device memory by sums of their gradients, with the arithmetic and the
// outcomes of ApplyRows (ops/optimizer.h), to the bit.
#ifndef STRATA_OPS_CUDA_ROWS_APPLY_H_
#define STRATA_OPS_CUDA_ROWS_APPLY_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/kernel/row_block.h"
#include "ops/optimizer.h"

namespace strata::ops::gpu {

// All pointers in device memory.
struct ApplyTask {
  RowBlock table;             // a row's weights (dim)
  uint32_t state_offset = 0;  // floats from a row's weights to its state (StateFloats)
  uint32_t dim = 0;
  // (rows): the row that each sum is for; kNoRow: none, nothing happens. No row twice. Null: sum i
  // is for row i.
  const uint32_t* row_of = nullptr;
  Count rows;
  const float* sums = nullptr;  // (rows, dim)
  size_t sum_stride = 0;        // floats
  // The step's scalars, so that a graph may be launched step after step.
  const StepScalars* step = nullptr;
  uint8_t* outcomes = nullptr;  // (rows) or null: 0, kRowRefused or kRowClipped; of kNoRow 0
  uint32_t* refused = nullptr;  // or null: the number of refused rows is added
};

// Asynchronous.
absl::Status Apply(CudaApi& api, const OptimizerConfig& config, const ApplyTask& task,
                   StreamHandle stream);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_ROWS_APPLY_H_
