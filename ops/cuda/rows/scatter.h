// Puts rows of floats into their places in a table, on a stream.
#ifndef STRATA_OPS_CUDA_ROWS_SCATTER_H_
#define STRATA_OPS_CUDA_ROWS_SCATTER_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/kernel/row_block.h"

namespace strata::ops::gpu {

// All pointers in memory that the device reads: its own, or pinned.
struct ScatterArguments {
  const float* rows = nullptr;       // (rows, dim), one behind the other
  const uint32_t* row_of = nullptr;  // (rows), distinct: its row of `table`
  Count count;                       // rows
  uint32_t dim = 0;
  RowBlock table;
};

// The first `dim` floats of each named row become those of `rows`. Asynchronous.
absl::Status Scatter(CudaApi& api, const ScatterArguments& arguments, StreamHandle stream);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_ROWS_SCATTER_H_
