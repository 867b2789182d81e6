// Gathers rows of a table and pools them into bags, on a stream.
#ifndef STRATA_OPS_CUDA_ROWS_POOL_H_
#define STRATA_OPS_CUDA_ROWS_POOL_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/kernel/row_block.h"

namespace strata::ops::gpu {

enum class Pooling : uint8_t {
  kSum,   // sum of value x row (rows as they are where there are no values)
  kMean,  // kSum's, divided by the number of features
};

// All pointers in device memory.
struct PoolArguments {
  RowBlock table;
  uint32_t dim = 0;                  // floats of a row that are read
  const uint32_t* row_of = nullptr;  // (features): kNoRow reads as zeros
  const float* values = nullptr;     // (features), or null: all 1
  // Bag b holds features first[b] .. first[b + 1] - 1; or, where null, bag_size each.
  const uint32_t* first = nullptr;  // (bags + 1)
  uint32_t bag_size = 1;
  Count bags;
  Pooling pooling = Pooling::kSum;
  float* out = nullptr;   // (bags, dim)
  size_t out_stride = 0;  // floats
};

// out: in bag order, the first feature initialises (value x row), each further one is a fma
// (EXACT.md rule 6; the bits of PoolRows in ops/nn/embedding.h). An empty bag is zeros.
// Asynchronous.
absl::Status Pool(CudaApi& api, const PoolArguments& arguments, StreamHandle stream);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_ROWS_POOL_H_
