// Register tiles of the matrix product, one build per instruction set. Plain types only: these
// files are compiled with other -march flags than the rest, so they must hold no inline code of the
// standard library (the linker may keep that copy for everybody).
// Tested by tests/ops/nn/gemm_test.cc
#ifndef STRATA_OPS_NN_GEMM_KERNEL_H_
#define STRATA_OPS_NN_GEMM_KERNEL_H_

#include <stddef.h>

namespace strata::ops {

// One tile of C: c[i][j] continues (load_c) or starts from zero a chain of fma over ascending k:
//   c = fma(a(i, k), b[k][j], c).
// Then, in this order and only where not null: c += bias[j]; relu: c = c > 0 ? c : 0;
// mask: c = mask[i][j] > 0 ? c : 0. No other arithmetic, so all builds give the same bits.
struct GemmTile {
  const float* a;   // strided kernels: a(i, k) = a[i * a_stride + k]; packed: a[k * tile_rows + i]
  size_t a_stride;  // floats; strided kernels only
  const float* b;   // (k, panel), packed; columns from `cols` on are zero
  size_t k;
  float* c;  // (rows, cols)
  size_t ldc;
  size_t rows;  // 1 .. tile_rows
  size_t cols;  // 1 .. panel
  bool load_c;
  bool relu;
  const float* bias;  // (cols) or null
  const float* mask;  // (rows, cols) or null
  size_t ld_mask;
  // A hint: k / 4 cache lines from here on will be needed soon, by later tiles. Any address, or
  // null.
  const float* prefetch;
};

struct GemmKernel {
  const char* name;
  size_t tile_rows;  // rows of a full tile
  size_t panel;      // columns of a full tile, and width of packed panels
  void (*strided)(const GemmTile& tile);
  void (*packed)(const GemmTile& tile);
};

// Need AVX2 and FMA; AVX-512 F, BW, VL, DQ. The caller checks.
extern const GemmKernel kGemmAvx2;
extern const GemmKernel kGemmAvx512;

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_GEMM_KERNEL_H_
