#include "worker/device/layers/layer_work.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "worker/device/layers/return_if_error.h"

namespace strata::device {

using ops::gpu::Extent;
using ops::gpu::MatmulPrecision;
using ops::gpu::MatmulShape;

namespace {

// Elements between rows of a rounded factor: 16 bytes each.
uint32_t RoundedStride(uint32_t columns) { return (columns + 7) / 8 * 8; }

// A factor as it stands.
Extent ExtentOfA(const MatmulShape& s) {
  return s.transpose_a ? Extent{s.k, s.m} : Extent{s.m, s.k};
}
Extent ExtentOfB(const MatmulShape& s) {
  return s.transpose_b ? Extent{s.n, s.k} : Extent{s.k, s.n};
}

size_t RoundedElements(const Extent& e) { return size_t{e.rows} * RoundedStride(e.columns); }

bool HasVector(const MatmulShape& s) { return s.m == 1 || s.n == 1 || s.k == 1; }

MatmulShape ColumnProduct(uint32_t rows, uint32_t left, uint32_t right) {
  MatmulShape shape;
  shape.m = left;
  shape.n = shape.ldc = right;
  shape.k = rows;
  shape.transpose_a = true;
  return shape;
}

}  // namespace

void LayerWork::NeedsColumnProduct(uint32_t rows, uint32_t left, uint32_t right) {
  NeedsProduct(ColumnProduct(rows, left, right));
}

absl::Status LayerWork::MultiplyColumns(uint32_t rows, const Columns& left, const Columns& right,
                                        float* out, ops::gpu::StreamHandle stream) {
  MatmulShape shape = ColumnProduct(rows, left.count, right.count);
  shape.lda = left.matrix.stride;
  shape.ldb = right.matrix.stride;
  return Multiply(shape, {left.matrix.data, right.matrix.data, out, nullptr, nullptr}, stream);
}

void LayerWork::NeedsProduct(const MatmulShape& shape) {
  if (precision_ != MatmulPrecision::kBf16 || HasVector(shape)) return;
  most_a_ = std::max(most_a_, RoundedElements(ExtentOfA(shape)));
  most_b_ = std::max(most_b_, RoundedElements(ExtentOfB(shape)));
}

void LayerWork::NeedsSums(const Extent& extent) {
  most_partials_ = std::max(most_partials_, ops::gpu::ColumnSumScratch(extent));
}

void LayerWork::Want(BufferList* memory) {
  memory->WantArray<uint16_t>(&rounded_a_, most_a_);
  memory->WantArray<uint16_t>(&rounded_b_, most_b_);
  memory->WantArray<float>(&partials_, most_partials_);
}

void LayerWork::WantRounded(const Extent& extent, ops::gpu::Buffer* to, BufferList* memory) const {
  if (precision_ == MatmulPrecision::kBf16)
    memory->WantArray<uint16_t>(to, RoundedElements(extent));
}

absl::StatusOr<RoundedFactor> LayerWork::Round(const MatmulShape& shape, const Extent& extent,
                                               const ops::gpu::Matrix& from,
                                               const ops::gpu::Buffer& to,
                                               ops::gpu::StreamHandle stream) const {
  if (precision_ != MatmulPrecision::kBf16 || HasVector(shape)) return RoundedFactor();
  const RoundedFactor made = {to.as<void>(), RoundedStride(extent.columns)};
  STRATA_RETURN_IF_ERROR(RoundToBf16(*api_, extent, from, to.as<uint16_t>(), made.stride, stream));
  return made;
}

absl::Status LayerWork::RoundFactor(const Extent& extent, const RoundedFactor& known,
                                    const void** factor, uint32_t* stride,
                                    const ops::gpu::Buffer& to,
                                    ops::gpu::StreamHandle stream) const {
  if (known.data != nullptr) {
    *factor = known.data;
    *stride = known.stride;
    return absl::OkStatus();
  }
  // Read only: RoundToBf16 takes what is written and what is read alike.
  const ops::gpu::Matrix from = {const_cast<float*>(static_cast<const float*>(*factor)), *stride};
  *stride = RoundedStride(extent.columns);
  if (to.bytes() < RoundedElements(extent) * sizeof(uint16_t)) {
    return absl::InternalError(absl::StrCat("a factor of ", extent.rows, " x ", extent.columns,
                                            " was not told to LayerWork::NeedsProduct"));
  }
  *factor = to.as<void>();
  return RoundToBf16(*api_, extent, from, to.as<uint16_t>(), *stride, stream);
}

absl::Status LayerWork::Multiply(MatmulShape shape, ops::gpu::MatmulOperands operands,
                                 const Rounded& rounded, ops::gpu::StreamHandle stream) {
  shape.precision = HasVector(shape) ? MatmulPrecision::kFp32 : precision_;
  if (shape.precision == MatmulPrecision::kBf16) {
    STRATA_RETURN_IF_ERROR(
        RoundFactor(ExtentOfA(shape), rounded.a, &operands.a, &shape.lda, rounded_a_, stream));
    STRATA_RETURN_IF_ERROR(
        RoundFactor(ExtentOfB(shape), rounded.b, &operands.b, &shape.ldb, rounded_b_, stream));
  }
  return blas_->Multiply(shape, operands, stream);
}

}  // namespace strata::device
