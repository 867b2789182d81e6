#include "ops/nn/gemm.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "ops/cpu_features.h"
#include "ops/parallel.h"

namespace strata::ops {
namespace {

struct Shape {
  size_t m, k, n;
};
const Shape kShapes[] = {{1, 1, 1},    {0, 5, 7},     {5, 0, 7},    {5, 7, 0},      {14, 64, 32},
                         {13, 3, 31},  {29, 257, 33}, {6, 5, 16},   {7, 300, 17},   {127, 429, 65},
                         {63, 128, 1}, {1, 700, 40},  {30, 1, 100}, {113, 513, 48}, {15, 16, 600}};

// A pseudo-random value in (-1, 1) with all 24 bits in use, so that the order of a sum shows.
std::vector<float> Values(size_t n, uint32_t seed) {
  std::vector<float> out(n);
  for (float& x : out) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<float>(static_cast<int32_t>(seed)) * 0x1p-31f;
  }
  return out;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

std::vector<const GemmKernel*> Kernels() {
  std::vector<const GemmKernel*> out = {&GemmKernelOf(IsaLevel::kV3)};
  if (SupportedIsaLevel() >= IsaLevel::kV4) out.push_back(&GemmKernelOf(IsaLevel::kV4));
  return out;
}

TEST_CASE("every kernel and thread count gives the chain of fma", "[ops]") {
  for (const Shape& s : kShapes) {
    const size_t lda = s.k + 3, ldc = s.n + 5;
    const auto a = Values(s.m * lda, 1), b = Values(s.k * s.n, 2), c0 = Values(s.m * ldc, 3);
    const auto bias = Values(s.n, 4), mask = Values(s.m * s.n, 5);
    std::vector<float> b_transposed(b.size());
    for (size_t k = 0; k < s.k; ++k) {
      for (size_t j = 0; j < s.n; ++j) b_transposed[j * s.k + k] = b[k * s.n + j];
    }
    for (const bool proceed : {false, true}) {
      for (int epilogue = 0; epilogue < 4; ++epilogue) {
        GemmEpilogue e;
        if (epilogue == 1 || epilogue == 2) e.bias = bias.data();
        e.relu = epilogue == 2;
        if (epilogue == 3) {
          e.mask = mask.data();
          e.ld_mask = s.n;
        }
        std::vector<float> expected = c0;
        for (size_t i = 0; i < s.m; ++i) {
          for (size_t j = 0; j < s.n; ++j) {
            float x = proceed ? c0[i * ldc + j] : 0.0f;
            for (size_t k = 0; k < s.k; ++k) x = std::fma(a[i * lda + k], b[k * s.n + j], x);
            if (e.bias != nullptr) x += bias[j];
            if (e.relu) x = x > 0 ? x : 0.0f;
            if (e.mask != nullptr) x = mask[i * s.n + j] > 0 ? x : 0.0f;
            expected[i * ldc + j] = x;
          }
        }
        for (const GemmKernel* kernel : Kernels()) {
          for (size_t threads : {1, 2, 3}) {
            const auto team = MakeParallel(threads);
            PackedMatrix packed(*kernel);
            const bool transposed = threads == 2;
            if (transposed) {
              packed.PackTransposed(b_transposed.data(), s.k, s.n, s.k, team.get());
            } else {
              packed.Pack(b.data(), s.k, s.n, s.n, team.get());
            }
            std::vector<float> c = c0;
            Gemm(s.m, a.data(), lda, packed, proceed ? GemmStart::kContinue : GemmStart::kZero,
                 c.data(), ldc, e, team.get());
            INFO(kernel->name << " m " << s.m << " k " << s.k << " n " << s.n << " epilogue "
                              << epilogue << " continue " << proceed << " threads " << threads);
            REQUIRE(SameBits(c, expected));
          }
        }
      }
    }
  }
}

TEST_CASE("every kernel and thread count gives the chain over rows", "[ops]") {
  for (const GemmKernel* kernel : Kernels()) {
    for (size_t threads : {1, 2, 3}) {
      const auto team = MakeParallel(threads);
      TransposedGemm gemm(*kernel);
      // All shapes in one call: m outputs x n columns over k rows.
      std::vector<std::vector<float>> a, b, c, sums, expected, expected_sums;
      std::vector<TransposedProduct> products;
      for (const Shape& s : kShapes) {
        a.push_back(Values(s.k * (s.m + 2), 6));
        b.push_back(Values(s.k * (s.n + 1), 7));
        c.push_back(Values(s.m * (s.n + 3), 8));
        sums.push_back(Values(s.n, 9));
        expected.push_back(c.back());
        expected_sums.emplace_back(s.n, 0.0f);
        for (size_t j = 0; j < s.n; ++j) {
          for (size_t i = 0; i < s.m; ++i) {
            float x = 0;
            for (size_t k = 0; k < s.k; ++k) {
              x = std::fma(a.back()[k * (s.m + 2) + i], b.back()[k * (s.n + 1) + j], x);
            }
            expected.back()[i * (s.n + 3) + j] = x;
          }
          for (size_t k = 0; k < s.k; ++k) expected_sums.back()[j] += b.back()[k * (s.n + 1) + j];
        }
      }
      for (size_t i = 0; i < a.size(); ++i) {
        const Shape& s = kShapes[i];
        products.push_back({s.k, s.m, s.n, a[i].data(), s.m + 2, b[i].data(), s.n + 1, c[i].data(),
                            s.n + 3, sums[i].data()});
      }
      for (int repeat = 0; repeat < 2; ++repeat) gemm.Run(products, team.get());
      for (size_t i = 0; i < a.size(); ++i) {
        INFO(kernel->name << " threads " << threads << " shape " << i);
        REQUIRE(SameBits(c[i], expected[i]));
        REQUIRE(SameBits(sums[i], expected_sums[i]));
      }
    }
  }
}

}  // namespace
}  // namespace strata::ops
