#include "ops/cuda/nn/layers.h"

#include "ops/codec_elements.h"
#include "ops/cuda/kernel/kernel.h"
#include "ops/cuda/kernel/row_block.h"
#include "ops/exact_math.h"
#include "ops/inline.h"

namespace strata::ops::gpu {
namespace {

using exact::Fma;

STRATA_HD float* At(const Matrix& m, uint32_t row, uint32_t column) {
  return m.data + size_t{row} * m.stride + column;
}

// One thread an element: neighbouring threads have neighbouring columns.
template <typename Body>
struct EachElement {
  static constexpr uint32_t kLanes = 1;
  Extent extent;
  Body body;

  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{extent.rows} * extent.columns; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, extent.columns);
    body(at.row, at.quad);
  }
};

template <typename Body>
absl::Status ForEach(CudaApi& api, const char* name, const Extent& extent, const Body& body,
                     StreamHandle stream) {
  const EachElement<Body> kernel = {extent, body};
  return LaunchOver(api, name, kernel, uint64_t{extent.rows} * extent.columns, stream);
}

struct Copy {
  Matrix from, to;
  STRATA_HD_MEMBER void operator()(uint32_t r, uint32_t c) const {
    *At(to, r, c) = *At(from, r, c);
  }
};

struct Add {
  Matrix from, to;
  STRATA_HD_MEMBER void operator()(uint32_t r, uint32_t c) const {
    *At(to, r, c) = *At(to, r, c) + *At(from, r, c);
  }
};

struct Multiply {
  Matrix a, b, to;
  STRATA_HD_MEMBER void operator()(uint32_t r, uint32_t c) const {
    *At(to, r, c) = *At(a, r, c) * *At(b, r, c);
  }
};

struct LessProduct {
  Matrix a, b, to;
  STRATA_HD_MEMBER void operator()(uint32_t r, uint32_t c) const {
    const float product = *At(a, r, c) * *At(b, r, c);
    *At(to, r, c) = *At(to, r, c) - product;
  }
};

struct Relu {
  Matrix value, to;
  STRATA_HD_MEMBER void operator()(uint32_t r, uint32_t c) const {
    if (!(*At(value, r, c) > 0.0f)) *At(to, r, c) = 0.0f;
  }
};

struct ToBf16 {
  Matrix from;
  uint16_t* to;
  uint32_t to_stride;
  STRATA_HD_MEMBER void operator()(uint32_t r, uint32_t c) const {
    to[size_t{r} * to_stride + c] = Bf16Of(*At(from, r, c));
  }
};

struct OfBf16 {
  const uint16_t* from;
  uint32_t from_stride;
  Matrix to;
  STRATA_HD_MEMBER void operator()(uint32_t r, uint32_t c) const {
    *At(to, r, c) = FromBf16(from[size_t{r} * from_stride + c]);
  }
};

// One thread a column of kSumRows rows.
struct PartialSums {
  static constexpr uint32_t kLanes = 1;
  Extent extent;
  Matrix x;
  float* partials;

  STRATA_HD_MEMBER uint64_t items() const {
    return (uint64_t{extent.rows} + kSumRows - 1) / kSumRows * extent.columns;
  }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, extent.columns);
    const uint32_t begin = at.row * kSumRows;
    const uint32_t rest = extent.rows - begin;
    const uint32_t n = rest < kSumRows ? rest : kSumRows;
    float sum = 0.0f;
    for (uint32_t r = 0; r < n; ++r) sum = sum + *At(x, begin + r, at.quad);
    partials[item] = sum;
  }
};

struct FoldSums {
  uint32_t parts, columns;
  const float* partials;
  float* out;
  STRATA_HD_MEMBER void operator()(uint32_t, uint32_t c) const {
    float sum = 0.0f;
    for (uint32_t p = 0; p < parts; ++p) sum = sum + partials[size_t{p} * columns + c];
    out[c] = sum;
  }
};

struct NextCross {
  CrossStep step;
  Matrix x, next;
  STRATA_HD_MEMBER void operator()(uint32_t r, uint32_t c) const {
    *At(next, r, c) = Fma(*At(step.x0, r, c), *At(step.factor, r, c), *At(x, r, c));
  }
};

struct SplitCross {
  CrossStep step;
  Matrix gradient, factor_gradient, input_gradient;
  STRATA_HD_MEMBER void operator()(uint32_t r, uint32_t c) const {
    const float g = *At(gradient, r, c);
    *At(factor_gradient, r, c) = g * *At(step.x0, r, c);
    float* const in = At(input_gradient, r, c);
    *in = Fma(g, *At(step.factor, r, c), *in);
  }
};

struct Scaled {
  NumericTerms t;
  STRATA_HD_MEMBER void operator()(uint32_t i, uint32_t d) const {
    const size_t at = size_t{i} * t.dim + d;
    t.scaled[at] = t.gradient[i] * t.sums[at];
  }
};

struct Squares {
  NumericTerms t;
  STRATA_HD_MEMBER void operator()(uint32_t i, uint32_t j) const {
    const size_t at = size_t{i} * t.numbers + j;
    t.squares[at] = (t.gradient[i] * t.numeric[at]) * t.numeric[at];
  }
};

struct LessSquares {
  uint32_t dim;
  const float* embedding;
  const float* square_sums;
  float* to;
  STRATA_HD_MEMBER void operator()(uint32_t j, uint32_t d) const {
    const size_t at = size_t{j} * dim + d;
    to[at] = to[at] - embedding[at] * square_sums[j];
  }
};

}  // namespace

absl::Status CopyMatrix(CudaApi& api, const Extent& extent, const Matrix& from, const Matrix& to,
                        StreamHandle stream) {
  return ForEach(api, "copy matrix", extent, Copy{from, to}, stream);
}

absl::Status AddMatrix(CudaApi& api, const Extent& extent, const Matrix& from, const Matrix& to,
                       StreamHandle stream) {
  return ForEach(api, "add matrix", extent, Add{from, to}, stream);
}

absl::Status MultiplyMatrix(CudaApi& api, const Extent& extent, const Matrix& a, const Matrix& b,
                            const Matrix& to, StreamHandle stream) {
  return ForEach(api, "multiply matrix", extent, Multiply{a, b, to}, stream);
}

absl::Status SubtractProduct(CudaApi& api, const Extent& extent, const Matrix& a, const Matrix& b,
                             const Matrix& to, StreamHandle stream) {
  return ForEach(api, "subtract product", extent, LessProduct{a, b, to}, stream);
}

absl::Status ReluGradient(CudaApi& api, const Extent& extent, const Matrix& value, const Matrix& to,
                          StreamHandle stream) {
  return ForEach(api, "relu gradient", extent, Relu{value, to}, stream);
}

absl::Status RoundToBf16(CudaApi& api, const Extent& extent, const Matrix& from, uint16_t* to,
                         uint32_t to_stride, StreamHandle stream) {
  return ForEach(api, "round to bf16", extent, ToBf16{from, to, to_stride}, stream);
}

absl::Status WidenBf16(CudaApi& api, const Extent& extent, const uint16_t* from,
                       uint32_t from_stride, const Matrix& to, StreamHandle stream) {
  return ForEach(api, "widen bf16", extent, OfBf16{from, from_stride, to}, stream);
}

absl::Status ColumnSums(CudaApi& api, const Extent& extent, const Matrix& x, float* scratch,
                        float* out, StreamHandle stream) {
  const PartialSums partial = {extent, x, scratch};
  absl::Status status = LaunchOver(api, "column sums", partial, partial.items(), stream);
  if (!status.ok()) return status;
  const uint32_t parts = (extent.rows + kSumRows - 1) / kSumRows;
  return ForEach(api, "fold column sums", {1, extent.columns},
                 FoldSums{parts, extent.columns, scratch, out}, stream);
}

absl::Status CrossForward(CudaApi& api, const CrossStep& step, const Matrix& x, const Matrix& next,
                          StreamHandle stream) {
  return ForEach(api, "cross forward", step.extent, NextCross{step, x, next}, stream);
}

absl::Status CrossBackward(CudaApi& api, const CrossStep& step, const Matrix& gradient,
                           const Matrix& factor_gradient, const Matrix& input_gradient,
                           StreamHandle stream) {
  return ForEach(api, "cross backward", step.extent,
                 SplitCross{step, gradient, factor_gradient, input_gradient}, stream);
}

absl::Status MakeNumericTerms(CudaApi& api, const NumericTerms& terms, StreamHandle stream) {
  absl::Status status =
      ForEach(api, "scaled sums", {terms.examples, terms.dim}, Scaled{terms}, stream);
  if (!status.ok()) return status;
  return ForEach(api, "numeric squares", {terms.examples, terms.numbers}, Squares{terms}, stream);
}

absl::Status SubtractSquares(CudaApi& api, uint32_t numbers, uint32_t dim, const float* embedding,
                             const float* square_sums, float* to, StreamHandle stream) {
  return ForEach(api, "subtract squares", {numbers, dim},
                 LessSquares{dim, embedding, square_sums, to}, stream);
}

}  // namespace strata::ops::gpu
