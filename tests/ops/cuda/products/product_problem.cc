#include "tests/ops/cuda/products/product_problem.h"

#include <algorithm>
#include <cmath>

namespace strata::ops::gpu::testing {
namespace {

double At(const std::vector<float>& x, bool transposed, uint32_t rows, uint32_t columns, uint32_t r,
          uint32_t c) {
  return transposed ? x[c * rows + r] : x[r * columns + c];
}

}  // namespace

double Product::WorstError(const MatmulShape& shape, const Product& after) const {
  using enum MatmulEpilogue;
  const MatmulEpilogue epilogue = shape.epilogue;
  const bool forward = epilogue >= kBias && epilogue <= kBiasReluMask;
  double worst = 0;
  std::vector<double> columns(n);
  for (uint32_t i = 0; i < m; ++i) {
    for (uint32_t j = 0; j < n; ++j) {
      double want = shape.add ? c[i * n + j] : 0.0;
      for (uint32_t l = 0; l < k; ++l) {
        want += At(a, shape.transpose_a, m, k, i, l) * At(b, shape.transpose_b, k, n, l, j);
      }
      if (forward) want += bias[j];
      if (epilogue == kBiasReluMask && std::fabs(want) > 1e-2 && after.Bit(i, j) != (want > 0)) {
        worst = 1;
      }
      if (forward && epilogue != kBias && want < 0) want = 0;
      if (epilogue >= kReluGradient && !Bit(i, j)) want = 0;
      columns[j] += want;
      worst = std::max(worst, std::fabs(want - after.c[i * n + j]));
    }
  }
  for (uint32_t j = 0; epilogue == kReluGradientBias && j < n; ++j) {
    worst = std::max(worst, std::fabs(columns[j] - after.bias[j]));
  }
  return worst;
}

}  // namespace strata::ops::gpu::testing
