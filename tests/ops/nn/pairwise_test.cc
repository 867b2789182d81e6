#include "ops/nn/pairwise.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "ops/cpu_features.h"
#include "ops/nn/gemm.h"

namespace strata::ops {
namespace {

std::vector<float> Values(size_t n, uint32_t seed) {
  std::vector<float> out(n);
  for (float& x : out) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<float>(static_cast<int32_t>(seed)) * 0x1p-31f;
  }
  return out;
}

constexpr size_t kRows = 3;
constexpr float kGap = 7.0f;  // what lies between rows and must stay

std::vector<IsaLevel> Levels() { return {IsaLevel::kV3, SupportedIsaLevel()}; }

TEST_CASE("dot products of every pair, to the bit", "[ops]") {
  for (size_t n : {1u, 2u, 5u, 14u, 27u, 33u, 40u, 66u}) {
    for (size_t dim : {1u, 3u, 16u, 33u}) {
      const size_t stride = n * dim + 5, pairs = n * (n - 1) / 2, dots_stride = pairs + 2;
      const std::vector<float> t = Values(kRows * stride, 1);
      std::vector<float> expected(kRows * dots_stride, kGap);
      for (size_t r = 0; r < kRows; ++r) {
        size_t at = r * dots_stride;
        for (size_t i = 0; i < n; ++i) {
          for (size_t j = 0; j < i; ++j, ++at) {
            expected[at] = 0;
            for (size_t d = 0; d < dim; ++d) {
              expected[at] =
                  std::fma(t[r * stride + i * dim + d], t[r * stride + j * dim + d], expected[at]);
            }
          }
        }
      }
      for (IsaLevel level : Levels()) {
        const PairwiseDots dots(GemmKernelOf(level), n, dim);
        REQUIRE(dots.pairs() == pairs);
        AlignedFloats scratch;
        std::fill_n(scratch.Reserve(dots.scratch()), dots.scratch(), NAN);
        std::vector<float> got(expected.size(), kGap);
        dots.Forward(kRows, t.data(), stride, got.data(), dots_stride, scratch.data());
        INFO(n << " vectors of " << dim);
        REQUIRE(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("gradients of the dot products, to the bit", "[ops]") {
  for (size_t n : {1u, 2u, 5u, 14u, 27u, 33u, 66u}) {
    for (size_t dim : {1u, 3u, 16u, 33u, 70u}) {
      const size_t stride = n * dim + 5, dots_stride = n * (n - 1) / 2 + 2;
      const std::vector<float> t = Values(kRows * stride, 1), g = Values(kRows * dots_stride, 2);
      std::vector<float> expected(kRows * stride, kGap);
      for (size_t r = 0; r < kRows; ++r) {
        for (size_t i = 0; i < n; ++i) {
          for (size_t d = 0; d < dim; ++d) {
            float sum = 0;
            for (size_t j = 0; j < n; ++j) {
              const size_t high = std::max(i, j), low = std::min(i, j);
              const float by = i == j ? 0.0f : g[r * dots_stride + high * (high - 1) / 2 + low];
              sum = std::fma(by, t[r * stride + j * dim + d], sum);
            }
            expected[r * stride + i * dim + d] = sum;
          }
        }
      }
      for (IsaLevel level : Levels()) {
        const PairwiseDots dots(GemmKernelOf(level), n, dim);
        AlignedFloats scratch;
        std::fill_n(scratch.Reserve(dots.scratch()), dots.scratch(), NAN);
        std::vector<float> got(expected.size(), kGap);
        dots.Backward(kRows, t.data(), stride, g.data(), dots_stride, got.data(), scratch.data());
        INFO(n << " vectors of " << dim);
        REQUIRE(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)) == 0);
      }
    }
  }
}

}  // namespace
}  // namespace strata::ops
