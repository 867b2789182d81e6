#include "ops/nn/gemm.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace strata::ops {
namespace {

// Rows of k per block: a panel's block (kBlockK x 32 floats) and the rows of A that meet it stay in
// the first level cache.
constexpr size_t kBlockK = 256;
constexpr size_t kHugePage = size_t{2} << 20;  // bytes
constexpr size_t kLineFloats = 16;             // of a cache line
// Tiles of rows that one task of Gemm takes.
constexpr size_t kTaskTiles = 8;

// Large memory on huge pages: tiles walk many rows at once, each on a page of its own.
size_t AlignOf(size_t n) { return n * sizeof(float) >= kHugePage ? kHugePage : 64; }

// Blocks of equal length (up to one) instead of a short last one.
size_t BlockLength(size_t k) {
  const size_t blocks = (k + kBlockK - 1) / kBlockK;
  return blocks == 0 ? 0 : (k + blocks - 1) / blocks;
}

void Epilogue(size_t m, size_t n, float* c, size_t ldc, const GemmEpilogue& e, bool clear) {
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      float x = clear ? 0.0f : c[i * ldc + j];
      if (e.bias != nullptr) x += e.bias[j];
      if (e.relu) x = x > 0.0f ? x : 0.0f;
      if (e.mask != nullptr) x = e.mask[i * e.ld_mask + j] > 0.0f ? x : 0.0f;
      c[i * ldc + j] = x;
    }
  }
}

}  // namespace

const GemmKernel& GemmKernelOf(IsaLevel level) {
  return level == IsaLevel::kV4 ? kGemmAvx512 : kGemmAvx2;
}

void AlignedFloats::Free::operator()(float* p) const { std::free(p); }

size_t AlignedFloats::BytesOf(size_t n) {
  const size_t align = AlignOf(n);
  return (std::max<size_t>(n, 16) * sizeof(float) + align - 1) / align * align;
}

float* AlignedFloats::Reserve(size_t n) {
  if (n > capacity_ || data_ == nullptr) {
    const size_t align = AlignOf(n), bytes = BytesOf(n);
    data_.reset();
    data_.reset(static_cast<float*>(std::aligned_alloc(align, bytes)));
    if (data_ == nullptr) throw std::bad_alloc();
    if (align == kHugePage) madvise(data_.get(), bytes, MADV_HUGEPAGE);  // a hint: may be refused
    capacity_ = bytes / sizeof(float);
  }
  return data_.get();
}

float* PackedMatrix::Resize(size_t k, size_t n) {
  k_ = k;
  n_ = n;
  return data_.Reserve(panels() * k * kernel_->panel);
}

void PackedMatrix::Pack(const float* b, size_t k, size_t n, size_t ldb, Parallel* parallel) {
  float* const data = Resize(k, n);
  const size_t width = kernel_->panel;
  parallel->For(panels(), [&](size_t p) {
    const size_t cols = std::min(width, n - p * width);
    float* out = data + p * k * width;
    for (size_t r = 0; r < k; ++r, out += width) {
      std::memcpy(out, b + r * ldb + p * width, cols * sizeof(float));
      std::memset(out + cols, 0, (width - cols) * sizeof(float));
    }
  });
}

void PackedMatrix::PackTransposed(const float* b, size_t k, size_t n, size_t ldb,
                                  Parallel* parallel) {
  float* const data = Resize(k, n);
  const size_t width = kernel_->panel;
  parallel->For(panels(), [&](size_t p) {
    const size_t cols = std::min(width, n - p * width);
    float* const out = data + p * k * width;
    // By squares of 16, so that reads and writes both use whole cache lines.
    for (size_t r0 = 0; r0 < k; r0 += 16) {
      const size_t r1 = std::min(k, r0 + 16);
      for (size_t c = 0; c < cols; ++c) {
        const float* in = b + (p * width + c) * ldb;
        for (size_t r = r0; r < r1; ++r) out[r * width + c] = in[r];
      }
      for (size_t r = r0; r < r1; ++r) {
        std::memset(out + r * width + cols, 0, (width - cols) * sizeof(float));
      }
    }
  });
}

void GemmRows(size_t m, const float* a, size_t lda, const PackedMatrix& b, GemmStart start,
              float* c, size_t ldc, const GemmEpilogue& epilogue) {
  const GemmKernel& kernel = b.kernel();
  const size_t k = b.k(), n = b.n(), width = kernel.panel;
  if (k == 0) {
    Epilogue(m, n, c, ldc, epilogue, start == GemmStart::kZero);
    return;
  }
  const size_t block = BlockLength(k);
  GemmTile t = {};
  t.a_stride = lda;
  t.ldc = ldc;
  for (size_t k0 = 0; k0 < k; k0 += block) {
    t.k = std::min(block, k - k0);
    t.load_c = k0 > 0 || start == GemmStart::kContinue;
    const bool last = k0 + t.k == k;
    t.relu = last && epilogue.relu;
    for (size_t j = 0; j < n; j += width) {
      t.b = b.panel(j / width) + k0 * width;
      t.cols = std::min(width, n - j);
      // The panel after this one, a piece with each tile: weights of all layers together exceed the
      // second level cache.
      const size_t next = j + width < n ? j / width + 1 : 0;
      const size_t next_k = j + width < n ? k0 : k0 + t.k;
      t.prefetch = next_k < k ? b.panel(next) + next_k * width : nullptr;
      t.bias = last && epilogue.bias != nullptr ? epilogue.bias + j : nullptr;
      for (size_t i = 0; i < m; i += kernel.tile_rows) {
        t.a = a + i * lda + k0;
        t.c = c + i * ldc + j;
        t.rows = std::min(kernel.tile_rows, m - i);
        if (last && epilogue.mask != nullptr) {
          t.mask = epilogue.mask + i * epilogue.ld_mask + j;
          t.ld_mask = epilogue.ld_mask;
        }
        kernel.strided(t);
        if (t.prefetch != nullptr) t.prefetch += t.k / 4 * kLineFloats;
      }
    }
  }
}

void Gemm(size_t m, const float* a, size_t lda, const PackedMatrix& b, GemmStart start, float* c,
          size_t ldc, const GemmEpilogue& epilogue, Parallel* parallel) {
  const size_t rows = kTaskTiles * b.kernel().tile_rows;
  parallel->For((m + rows - 1) / rows, [&](size_t task) {
    const size_t first = task * rows;
    GemmEpilogue e = epilogue;
    if (e.mask != nullptr) e.mask += first * e.ld_mask;
    GemmRows(std::min(rows, m - first), a + first * lda, lda, b, start, c + first * ldc, ldc, e);
  });
}

}  // namespace strata::ops
