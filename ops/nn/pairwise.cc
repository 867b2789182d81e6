#include "ops/nn/pairwise.h"

#include <algorithm>
#include <cstring>

namespace strata::ops {
namespace {

constexpr size_t kLine = 16;  // floats of a cache line

size_t RoundUp(size_t n, size_t to) { return (n + to - 1) / to * to; }

// Packs t (vectors, dim) transposed into panels of `width` columns, one column a vector: panel p
// holds element 0 of its vectors, then element 1... Columns beyond are zero.
void PackTransposed(const float* t, size_t vectors, size_t dim, size_t width, float* out) {
  for (size_t first = 0; first < vectors; first += width, out += dim * width) {
    const size_t cols = std::min(width, vectors - first);
    if (cols < width) std::memset(out, 0, dim * width * sizeof(float));
    // By groups of 4 vectors, so that writes come in runs.
    size_t c = 0;
    for (; c + 4 <= cols; c += 4) {
      const float* const in = t + (first + c) * dim;
      for (size_t d = 0; d < dim; ++d) {
        float* const to = out + d * width + c;
        to[0] = in[d];
        to[1] = in[dim + d];
        to[2] = in[2 * dim + d];
        to[3] = in[3 * dim + d];
      }
    }
    for (; c < cols; ++c) {
      const float* const in = t + (first + c) * dim;
      for (size_t d = 0; d < dim; ++d) out[d * width + c] = in[d];
    }
  }
}

// Packs t (vectors, dim) into panels of `width` of its columns.
void PackRows(const float* t, size_t vectors, size_t dim, size_t width, float* out) {
  for (size_t first = 0; first < dim; first += width) {
    const size_t cols = std::min(width, dim - first);
    for (size_t v = 0; v < vectors; ++v, out += width) {
      std::memcpy(out, t + v * dim + first, cols * sizeof(float));
      std::memset(out + cols, 0, (width - cols) * sizeof(float));
    }
  }
}

// The symmetric square of a lower triangle, zeros on its diagonal.
void FillSquare(const float* triangle, size_t n, size_t stride, float* square) {
  for (size_t i = 0; i < n; triangle += i, ++i) {
    float* const row = square + i * stride;
    std::memcpy(row, triangle, i * sizeof(float));
    row[i] = 0.0f;
    for (size_t j = 0; j < i; ++j) square[j * stride + i] = triangle[j];
  }
}

}  // namespace

PairwiseDots::PairwiseDots(const GemmKernel& kernel, size_t vectors, size_t dim)
    : kernel_(&kernel), vectors_(vectors), dim_(dim), square_stride_(RoundUp(vectors, kLine)) {}

size_t PairwiseDots::scratch() const {
  const size_t packed =
      std::max(RoundUp(vectors_, kernel_->panel) * dim_, RoundUp(dim_, kernel_->panel) * vectors_);
  return packed + vectors_ * square_stride_;
}

void PairwiseDots::Forward(size_t rows, const float* t, size_t t_stride, float* dots,
                           size_t dots_stride, float* scratch) const {
  float* const square = scratch;
  float* const packed = scratch + vectors_ * square_stride_;
  const size_t width = kernel_->panel, height = kernel_->tile_rows;
  GemmTile tile = {};
  tile.a_stride = dim_;
  tile.k = dim_;
  tile.ldc = square_stride_;
  for (size_t r = 0; r < rows; ++r, t += t_stride, dots += dots_stride) {
    PackTransposed(t, vectors_, dim_, width, packed);
    for (size_t i = 0; i < vectors_; i += height) {
      tile.a = t + i * dim_;
      tile.rows = std::min(height, vectors_ - i);
      // Columns below the tile's last row are all that the triangle needs.
      const size_t cols = i + tile.rows;
      for (size_t j = 0; j < cols; j += width) {
        tile.b = packed + j * dim_;
        tile.cols = std::min(width, cols - j);
        tile.c = square + i * square_stride_ + j;
        kernel_->strided(tile);
      }
    }
    float* to = dots;
    for (size_t i = 0; i < vectors_; to += i, ++i) {
      std::memcpy(to, square + i * square_stride_, i * sizeof(float));
    }
  }
}

void PairwiseDots::Backward(size_t rows, const float* t, size_t t_stride,
                            const float* dots_gradient, size_t dots_stride, float* gradient,
                            float* scratch) const {
  float* const square = scratch;
  float* const packed = scratch + vectors_ * square_stride_;
  const size_t width = kernel_->panel, height = kernel_->tile_rows;
  GemmTile tile = {};
  tile.a_stride = square_stride_;
  tile.k = vectors_;
  tile.ldc = dim_;
  for (size_t r = 0; r < rows;
       ++r, t += t_stride, dots_gradient += dots_stride, gradient += t_stride) {
    FillSquare(dots_gradient, vectors_, square_stride_, square);
    PackRows(t, vectors_, dim_, width, packed);
    for (size_t j = 0; j < dim_; j += width) {
      tile.b = packed + j * vectors_;
      tile.cols = std::min(width, dim_ - j);
      for (size_t i = 0; i < vectors_; i += height) {
        tile.a = square + i * square_stride_;
        tile.rows = std::min(height, vectors_ - i);
        tile.c = gradient + i * dim_ + j;
        kernel_->strided(tile);
      }
    }
  }
}

}  // namespace strata::ops
