// What follows a product, by kernels of their own: where the products' library has none that does
// it. All pointers are in device memory; asynchronous.
// Tested by tests/ops/cuda/nn/layers_test.cc
#ifndef STRATA_OPS_CUDA_PRODUCTS_EPILOGUE_H_
#define STRATA_OPS_CUDA_PRODUCTS_EPILOGUE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/nn/layers.h"

namespace strata::ops::gpu {

// A bit an element: that of column j is bit j % 8 of byte j / 8 of its row.
struct BitMask {
  uint8_t* bits = nullptr;
  uint32_t stride = 0;  // bits between rows: a multiple of 8
};

struct BiasTask {
  Extent extent;
  Matrix x;
  const float* bias = nullptr;  // (columns)
  bool relu = false;
  BitMask mask;  // without bits: not wanted
};

// x = x + bias; with relu, 0 where that is not above 0 (what is not a number stays one), and the
// mask says where it was.
absl::Status AddBias(CudaApi& api, const BiasTask& task, StreamHandle stream);
// x = 0 where the mask's bit is not set.
absl::Status KeepMasked(CudaApi& api, const Extent& extent, const BitMask& mask, const Matrix& x,
                        StreamHandle stream);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_PRODUCTS_EPILOGUE_H_
