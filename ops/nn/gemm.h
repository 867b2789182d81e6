// Single-precision matrix products whose bits depend on the shapes alone (EXACT.md rule 10): every
// element of the result is one chain of fma over ascending k, whatever the instruction set, the
// number of threads and the blocking. Blocks of k continue the chain through C in memory.
//
// The blocking is that of Goto and van de Geijn (ACM TOMS 34(3), 2008): panels of B in the second
// level cache, a register tile of C per call of the kernel (gemm_kernel.h).
#ifndef STRATA_OPS_NN_GEMM_H_
#define STRATA_OPS_NN_GEMM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ops/cpu_features.h"
#include "ops/nn/gemm_kernel.h"
#include "ops/parallel.h"

namespace strata::ops {

// The kernel of an instruction set; ActiveIsaLevel() names the one to use.
const GemmKernel& GemmKernelOf(IsaLevel level);

// Memory on a cache line (large: on huge pages) that grows and is reused. Contents are lost when it
// grows.
class AlignedFloats {
 public:
  // At least n floats. Any thread, one at a time.
  float* Reserve(size_t n);
  // What Reserve(n) takes where there was nothing: whole cache lines, or whole huge pages.
  static size_t BytesOf(size_t n);
  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(float* p) const;
  };
  std::unique_ptr<float, Free> data_;
  size_t capacity_ = 0;
};

// A right-hand side (k, n), cut into panels of kernel.panel columns: panel p holds its columns of
// row 0, then of row 1...; columns beyond n are zero. Filled by one thread at a time, read by any.
class PackedMatrix {
 public:
  explicit PackedMatrix(const GemmKernel& kernel) : kernel_(&kernel) {}

  // From row-major b (k, n) with rows ldb floats apart.
  void Pack(const float* b, size_t k, size_t n, size_t ldb, Parallel* parallel);
  // From its transpose: b is row-major (n, k), rows ldb floats apart.
  void PackTransposed(const float* b, size_t k, size_t n, size_t ldb, Parallel* parallel);

  const GemmKernel& kernel() const { return *kernel_; }
  size_t k() const { return k_; }
  size_t n() const { return n_; }
  size_t panels() const { return (n_ + kernel_->panel - 1) / kernel_->panel; }
  const float* panel(size_t p) const { return data_.data() + p * k_ * kernel_->panel; }

 private:
  float* Resize(size_t k, size_t n);

  const GemmKernel* kernel_;
  size_t k_ = 0, n_ = 0;
  AlignedFloats data_;
};

enum class GemmStart : uint8_t {
  kZero,      // C = A B; what C held is not read
  kContinue,  // C = C + A B, the chain goes on from C's value
};

// What is done to an element after its chain, in this order.
struct GemmEpilogue {
  const float* bias = nullptr;  // (n): c += bias[j]
  bool relu = false;            // c = c > 0 ? c : 0
  const float* mask = nullptr;  // (m, n): c = mask[i][j] > 0 ? c : 0
  size_t ld_mask = 0;           // floats between rows of mask
};

// C (m, n) from A (m, k) and B, on the calling thread; row-major, rows lda and ldc floats apart.
// With k = 0 the chain is empty: C is zero (or stays) before the epilogue.
void GemmRows(size_t m, const float* a, size_t lda, const PackedMatrix& b, GemmStart start,
              float* c, size_t ldc, const GemmEpilogue& epilogue);

// The same, spread over blocks of rows.
void Gemm(size_t m, const float* a, size_t lda, const PackedMatrix& b, GemmStart start, float* c,
          size_t ldc, const GemmEpilogue& epilogue, Parallel* parallel);

// C (m, n) = A^T B, a chain over ascending rows of A and B: the gradient of a layer's weights from
// its inputs A and the gradient B of its outputs.
struct TransposedProduct {
  size_t rows = 0, m = 0, n = 0;
  const float* a = nullptr;  // (rows, m), rows lda floats apart
  size_t lda = 0;
  const float* b = nullptr;  // (rows, n), rows ldb floats apart
  size_t ldb = 0;
  float* c = nullptr;  // (m, n), rows ldc floats apart; what it held is not read
  size_t ldc = 0;
  float* column_sums = nullptr;  // (n) or null: sums of B's columns, each added in ascending order
};

// Computes such products, several in one go so that threads share them evenly. Owns its scratch:
// threads x kBlockRows x (m / threads + kColumns) floats. One call at a time.
class TransposedGemm {
 public:
  static constexpr size_t kBlockRows = 192;  // rows packed at a time
  static constexpr size_t kColumns = 512;    // columns of C that one task works on

  explicit TransposedGemm(const GemmKernel& kernel) : kernel_(&kernel) {}
  void Run(std::span<const TransposedProduct> products, Parallel* parallel);

 private:
  struct Task {
    const TransposedProduct* product;
    size_t first_row, rows;        // of C
    size_t first_column, columns;  // of C
  };
  void RunTask(const Task& task, float* scratch) const;

  const GemmKernel* kernel_;
  std::vector<Task> tasks_;
  std::vector<AlignedFloats> scratch_;  // one for each thread that is in a task
};

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_GEMM_H_
