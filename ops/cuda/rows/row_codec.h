// Rows of floats in fewer bytes, encoded and decoded on a device: the bytes of ops/codec.h, and
// binary16 besides.
// Tested by tests/ops/cuda/elements_test.cc
#ifndef STRATA_OPS_CUDA_ROWS_ROW_CODEC_H_
#define STRATA_OPS_CUDA_ROWS_ROW_CODEC_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/kernel/row_block.h"

namespace strata::ops::gpu {

enum class PackedFormat : uint8_t { kBf16, kFp16, kInt8 };

// Bytes of a row: 2 dim, or dim + 4 (the scale, then one signed byte an element).
constexpr size_t PackedRowBytes(PackedFormat format, size_t dim) {
  return format == PackedFormat::kInt8 ? dim + 4 : dim * 2;
}

// out: (rows) of PackedRowBytes, one after the other, from a multiple of 8 bytes on. rows: (rows,
// dim), finite, stride floats apart. All pointers in device memory. Asynchronous.
absl::Status PackRows(CudaApi& api, PackedFormat format, const float* rows, size_t stride,
                      uint32_t dim, const Count& count, void* out, StreamHandle stream);

// The way back: bf16 and fp16 are exact; int8: element x scale. Asynchronous.
absl::Status UnpackRows(CudaApi& api, PackedFormat format, const void* packed, uint32_t dim,
                        const Count& count, float* rows, size_t stride, StreamHandle stream);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_ROWS_ROW_CODEC_H_
