#include <algorithm>
#include <cstring>
#include <mutex>

#include "ops/nn/gemm.h"

namespace strata::ops {
namespace {

size_t CeilDiv(size_t a, size_t b) { return (a + b - 1) / b; }

// Cuts `cols` columns of a block (k rows) into strips of kWidth: strip s holds its columns of row
// 0, then of row 1... The last strip is filled up with zeros.
template <size_t kWidth>
void PackStripsOf(const float* in, size_t ld, size_t k, size_t cols, float* out) {
  const size_t full = cols / kWidth, rest = cols % kWidth;
  for (size_t r = 0; r < k; ++r, in += ld) {
    float* to = out + r * kWidth;
    for (size_t s = 0; s < full; ++s, to += k * kWidth) {
      std::memcpy(to, in + s * kWidth, kWidth * sizeof(float));
    }
    if (rest == 0) continue;
    for (size_t j = 0; j < rest; ++j) to[j] = in[full * kWidth + j];
    for (size_t j = rest; j < kWidth; ++j) to[j] = 0.0f;
  }
}

void PackStrips(const float* in, size_t ld, size_t k, size_t cols, size_t width, float* out) {
  switch (width) {  // tile_rows and panel of the kernels
    case 6:
      return PackStripsOf<6>(in, ld, k, cols, out);
    case 14:
      return PackStripsOf<14>(in, ld, k, cols, out);
    case 16:
      return PackStripsOf<16>(in, ld, k, cols, out);
    default:
      return PackStripsOf<32>(in, ld, k, cols, out);
  }
}

// Fetches the next block's rows of two matrices, a few cache lines with each tile. Whole rows, also
// where a task needs a part: other threads need the rest.
class Prefetcher {
 public:
  Prefetcher(const float* b, size_t b_floats, const float* a, size_t a_floats)
      : b_(b), b_floats_(b_floats), a_(a), a_floats_(a_floats) {}
  // Where the next `lines` lines begin; null at the end.
  const float* Next(size_t lines) {
    const size_t at = at_;
    at_ += lines * kLineFloats;
    if (at < b_floats_) return b_ + at;
    return at - b_floats_ < a_floats_ ? a_ + (at - b_floats_) : nullptr;
  }

 private:
  static constexpr size_t kLineFloats = 16;
  const float* const b_;
  const size_t b_floats_;
  const float* const a_;
  const size_t a_floats_;
  size_t at_ = 0;
};

// sums[j] += each row of a packed strip, ascending.
void AddColumns(const float* strip, size_t k, size_t width, size_t cols, float* sums) {
  constexpr size_t kMaxPanel = 32;
  float acc[kMaxPanel] = {};
  std::memcpy(acc, sums, cols * sizeof(float));
  for (size_t r = 0; r < k; ++r, strip += width) {
    for (size_t j = 0; j < width; ++j) acc[j] += strip[j];
  }
  std::memcpy(sums, acc, cols * sizeof(float));
}

// Scratch memories that no task uses now.
class FreeList {
 public:
  explicit FreeList(std::vector<AlignedFloats>& all) {
    for (AlignedFloats& f : all) free_.push_back(&f);
  }
  AlignedFloats* Take() {
    std::lock_guard<std::mutex> lock(mu_);
    AlignedFloats* f = free_.back();
    free_.pop_back();
    return f;
  }
  void Give(AlignedFloats* f) {
    std::lock_guard<std::mutex> lock(mu_);
    free_.push_back(f);
  }

 private:
  std::mutex mu_;
  std::vector<AlignedFloats*> free_;
};

}  // namespace

void TransposedGemm::Run(std::span<const TransposedProduct> products, Parallel* parallel) {
  const size_t threads = parallel->threads();
  tasks_.clear();
  for (const TransposedProduct& p : products) {
    const size_t strips = CeilDiv(p.m, kernel_->tile_rows);
    const size_t groups = std::clamp<size_t>(strips, 1, threads);
    for (size_t j = 0; j < p.n; j += kColumns) {
      for (size_t g = 0; g < groups; ++g) {
        const size_t first = g * strips / groups * kernel_->tile_rows;
        const size_t end = std::min(p.m, (g + 1) * strips / groups * kernel_->tile_rows);
        tasks_.push_back({&p, first, end - first, j, std::min(kColumns, p.n - j)});
      }
    }
  }
  scratch_.resize(std::max(scratch_.size(), threads));
  FreeList free(scratch_);
  parallel->For(tasks_.size(), [&](size_t i) {
    const Task& t = tasks_[i];
    AlignedFloats* scratch = free.Take();
    const size_t a_floats = CeilDiv(t.rows, kernel_->tile_rows) * kernel_->tile_rows * kBlockRows;
    const size_t b_floats = CeilDiv(t.columns, kernel_->panel) * kernel_->panel * kBlockRows;
    RunTask(t, scratch->Reserve(b_floats + a_floats));
    free.Give(scratch);
  });
}

void TransposedGemm::RunTask(const Task& task, float* scratch) const {
  const TransposedProduct& p = *task.product;
  const size_t width = kernel_->panel, height = kernel_->tile_rows;
  float* const c = p.c + task.first_row * p.ldc + task.first_column;
  float* const sums =
      p.column_sums != nullptr && task.first_row == 0 ? p.column_sums + task.first_column : nullptr;
  if (sums != nullptr) std::fill_n(sums, task.columns, 0.0f);
  if (p.rows == 0) {
    for (size_t i = 0; i < task.rows; ++i) std::fill_n(c + i * p.ldc, task.columns, 0.0f);
    return;
  }
  float* const packed_b = scratch;
  float* const packed_a = scratch + CeilDiv(task.columns, width) * width * kBlockRows;
  GemmTile t = {};
  t.ldc = p.ldc;
  for (size_t r = 0; r < p.rows; r += kBlockRows) {
    t.k = std::min(kBlockRows, p.rows - r);
    t.load_c = r > 0;
    PackStrips(p.b + r * p.ldb + task.first_column, p.ldb, t.k, task.columns, width, packed_b);
    PackStrips(p.a + r * p.lda + task.first_row, p.lda, t.k, task.rows, height, packed_a);
    const size_t next = r + t.k;
    const size_t next_rows = std::min(kBlockRows, p.rows - next);
    Prefetcher ahead(p.b + next * p.ldb, next_rows * p.ldb, p.a + next * p.lda, next_rows * p.lda);
    for (size_t j = 0; j < task.columns; j += width) {
      t.b = packed_b + j * t.k;
      t.cols = std::min(width, task.columns - j);
      if (sums != nullptr) AddColumns(t.b, t.k, width, t.cols, sums + j);
      for (size_t i = 0; i < task.rows; i += height) {
        t.a = packed_a + i * t.k;
        t.c = c + i * p.ldc + j;
        t.rows = std::min(height, task.rows - i);
        t.prefetch = ahead.Next(t.k / 4);
        kernel_->packed(t);
      }
    }
  }
}

}  // namespace strata::ops
