// Rows of a table in device memory, as kernels take them.
// Tested by tests/ops/cuda/elements_test.cc, tests/ops/cuda/rows/apply_test.cc
#ifndef STRATA_OPS_CUDA_KERNEL_ROW_BLOCK_H_
#define STRATA_OPS_CUDA_KERNEL_ROW_BLOCK_H_

#include <cstddef>
#include <cstdint>

#include "ops/inline.h"

namespace strata::ops::gpu {

inline constexpr uint32_t kNoRow = 0xffffffffu;

// How many of something there are: `*count` where that is given (device memory, written by work
// before), else `most`; never more than `most`.
struct Count {
  const uint32_t* count = nullptr;
  uint32_t most = 0;

  STRATA_HD_MEMBER uint32_t Get() const {
    if (count == nullptr) return most;
    const uint32_t n = *count;
    return n < most ? n : most;
  }
};

// Row r stands at base + r * stride. The memory belongs to the caller.
struct RowBlock {
  float* base = nullptr;
  size_t stride = 0;  // floats

  STRATA_HD_MEMBER float* At(uint32_t row) const { return base + row * stride; }
};

// Item = row * quads + quad. Divides in 32 bits where it can: 64 take several times as long.
struct RowAndQuad {
  uint32_t row, quad;
};
STRATA_HD RowAndQuad SplitItem(uint64_t item, uint32_t quads) {
  if (item <= 0xffffffffu) {
    const auto small = static_cast<uint32_t>(item);
    const uint32_t row = small / quads;
    return {row, small - row * quads};
  }
  const uint64_t row = item / quads;
  return {static_cast<uint32_t>(row), static_cast<uint32_t>(item - row * quads)};
}

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_KERNEL_ROW_BLOCK_H_
