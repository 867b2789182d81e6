// What stands between the matrix products of a model on a device: element by element over matrices
// of (rows, columns), and sums of columns. All pointers are in device memory; everything is
// asynchronous.
#ifndef STRATA_OPS_CUDA_NN_LAYERS_H_
#define STRATA_OPS_CUDA_NN_LAYERS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"

namespace strata::ops::gpu {

// Row r stands at data + r * stride. The memory belongs to the caller.
struct Matrix {
  float* data = nullptr;
  uint32_t stride = 0;  // floats

  Matrix Columns(uint32_t from) const { return {data + from, stride}; }
};

struct Extent {
  uint32_t rows = 0, columns = 0;
};

// to = from.
absl::Status CopyMatrix(CudaApi& api, const Extent& extent, const Matrix& from, const Matrix& to,
                        StreamHandle stream);
// to = to + from.
absl::Status AddMatrix(CudaApi& api, const Extent& extent, const Matrix& from, const Matrix& to,
                       StreamHandle stream);
// to = a x b, element by element.
absl::Status MultiplyMatrix(CudaApi& api, const Extent& extent, const Matrix& a, const Matrix& b,
                            const Matrix& to, StreamHandle stream);
// to = to - a x b, element by element, the product rounded.
absl::Status SubtractProduct(CudaApi& api, const Extent& extent, const Matrix& a, const Matrix& b,
                             const Matrix& to, StreamHandle stream);
// to = 0 wherever value is not above 0.
absl::Status ReluGradient(CudaApi& api, const Extent& extent, const Matrix& value, const Matrix& to,
                          StreamHandle stream);
// bf16 of each element, to nearest; rows of `to` stand to_stride elements apart.
absl::Status RoundToBf16(CudaApi& api, const Extent& extent, const Matrix& from, uint16_t* to,
                         uint32_t to_stride, StreamHandle stream);
// The way back, exact; rows of `from` stand from_stride elements apart.
absl::Status WidenBf16(CudaApi& api, const Extent& extent, const uint16_t* from,
                       uint32_t from_stride, const Matrix& to, StreamHandle stream);

inline constexpr uint32_t kSumRows = 256;  // rows of a partial sum
// Floats of scratch memory that ColumnSums needs.
constexpr size_t ColumnSumScratch(const Extent& extent) {
  return (size_t{extent.rows} + kSumRows - 1) / kSumRows * extent.columns;
}
// out (columns): the sum of each column: of kSumRows rows each, ascending, then of those,
// ascending.
absl::Status ColumnSums(CudaApi& api, const Extent& extent, const Matrix& x, float* scratch,
                        float* out, StreamHandle stream);

// A cross layer (ops/nn/cross.h): next = x0 * factor + x, rounded once.
struct CrossStep {
  Extent extent;
  Matrix x0, factor;
};
absl::Status CrossForward(CudaApi& api, const CrossStep& step, const Matrix& x, const Matrix& next,
                          StreamHandle stream);
// factor_gradient = gradient * x0; input_gradient += gradient * factor, by fma.
absl::Status CrossBackward(CudaApi& api, const CrossStep& step, const Matrix& gradient,
                           const Matrix& factor_gradient, const Matrix& input_gradient,
                           StreamHandle stream);

// What fm's gradients by numeric embeddings are products of: scaled_id = g_i sums_id, and
// squares_ij = g_i x_ij^2. numeric: (examples, numbers); sums, scaled: (examples, dim).
struct NumericTerms {
  uint32_t examples = 0, numbers = 0, dim = 0;
  const float* gradient = nullptr;  // (examples)
  const float* numeric = nullptr;
  const float* sums = nullptr;
  float* scaled = nullptr;
  float* squares = nullptr;  // (examples, numbers)
};
absl::Status MakeNumericTerms(CudaApi& api, const NumericTerms& terms, StreamHandle stream);
// to_jd = to_jd - embedding_jd x square_sums_j: (numbers, dim) each.
absl::Status SubtractSquares(CudaApi& api, uint32_t numbers, uint32_t dim, const float* embedding,
                             const float* square_sums, float* to, StreamHandle stream);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_NN_LAYERS_H_
