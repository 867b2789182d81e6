// A product of odd sizes with everything that an epilogue may want, and what it should come to.
#ifndef STRATA_TESTS_OPS_CUDA_PRODUCTS_PRODUCT_PROBLEM_H_
#define STRATA_TESTS_OPS_CUDA_PRODUCTS_PRODUCT_PROBLEM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/cuda/products/blas.h"
#include "tests/ops/cuda/api/test_apis.h"

namespace strata::ops::gpu::testing {

struct Product {
  static constexpr uint32_t m = 37, n = 150, k = 29, kMaskBits = 256;

  explicit Product(uint64_t seed) {
    Random random(seed);
    a = random.Floats(m * k);
    b = random.Floats(k * n);
    c = random.Floats(m * n);
    bias = random.Floats(n);
    mask.assign(m * kMaskBits / 8, 0);
    for (uint8_t& byte : mask) byte = static_cast<uint8_t>(random.Below(256));
  }
  // transposes: bit 0 of a, bit 1 of b.
  MatmulShape Shape(MatmulEpilogue epilogue, int transposes) const {
    MatmulShape s;
    s.m = m;
    s.n = s.ldc = n;
    s.k = k;
    s.transpose_a = transposes % 2 == 1;
    s.transpose_b = transposes / 2 == 1;
    s.lda = s.transpose_a ? m : k;
    s.ldb = s.transpose_b ? k : n;
    s.epilogue = epilogue;
    s.mask_stride = kMaskBits;
    return s;
  }
  MatmulOperands Operands() { return {a.data(), b.data(), c.data(), bias.data(), mask.data()}; }
  bool Bit(uint32_t i, uint32_t j) const { return mask[(i * kMaskBits + j) / 8] >> (j % 8) & 1; }

  // The largest error of what `after` holds where this was before; a mask's bit that is wrong, and
  // not by rounding, counts as 1.
  double WorstError(const MatmulShape& shape, const Product& after) const;

  std::vector<float> a, b, c, bias;
  std::vector<uint8_t> mask;
};

inline constexpr MatmulEpilogue kEpilogues[] = {
    MatmulEpilogue::kNone,         MatmulEpilogue::kBias,
    MatmulEpilogue::kBiasRelu,     MatmulEpilogue::kBiasReluMask,
    MatmulEpilogue::kReluGradient, MatmulEpilogue::kReluGradientBias};

}  // namespace strata::ops::gpu::testing

#endif  // STRATA_TESTS_OPS_CUDA_PRODUCTS_PRODUCT_PROBLEM_H_
