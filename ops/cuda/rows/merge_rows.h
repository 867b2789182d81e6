// Adds two lists of rows along the lane tree (ops/row_sum.h), on a stream. Which rows meet is known
// on the host.
#ifndef STRATA_OPS_CUDA_ROWS_MERGE_ROWS_H_
#define STRATA_OPS_CUDA_ROWS_MERGE_ROWS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/kernel/row_block.h"

namespace strata::ops::gpu {

// All pointers in device memory; lists have their rows of `dim` floats one behind the other.
struct MergeArguments {
  const float* left = nullptr;
  const float* right = nullptr;
  const uint32_t* left_of = nullptr;   // (count): the row of left, or kNoRow
  const uint32_t* right_of = nullptr;  // (count): of right; not both are kNoRow
  Count count;
  uint32_t dim = 0;
  float* out = nullptr;  // (count, dim); neither of the lists
};

// out[i] = left + right where both have a row, else the one that has it, with its bits.
// Asynchronous.
absl::Status MergeRows(CudaApi& api, const MergeArguments& arguments, StreamHandle stream);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_ROWS_MERGE_ROWS_H_
