// What stands between a model's products, against plain loops and ops/nn, to the bit.
#include "ops/cuda/nn/layers.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <vector>

#include "ops/codec_elements.h"
#include "ops/cuda/products/epilogue.h"
#include "ops/exact_math.h"
#include "tests/ops/cuda/api/test_apis.h"

namespace strata::ops::gpu {
namespace {

using exact::Fma;
using testing::Apis;
using testing::DeviceVector;
using testing::Differences;
using testing::Random;
using testing::TestApi;

constexpr uint32_t kRows = 700, kColumns = 13, kStride = 17;
constexpr Extent kExtent = {kRows, kColumns};

// Matrices on a device and what they should become.
struct Matrices {
  explicit Matrices(TestApi& test, size_t count) : test_(test) {
    Random random(11);
    for (size_t i = 0; i < count; ++i) {
      right.push_back(random.Floats(kRows * kStride));
      there_.emplace_back(test, right.back());
    }
  }
  Matrix at(size_t i) const { return {there_[i].get(), kStride}; }
  // Changes what should come out, element by element.
  void Expect(const std::function<void(size_t at)>& change) {
    for (uint32_t r = 0; r < kRows; ++r) {
      for (uint32_t c = 0; c < kColumns; ++c) change(r * kStride + c);
    }
  }
  void Check() const {
    INFO(test_.name);
    for (size_t i = 0; i < right.size(); ++i) CHECK(Differences(there_[i].Get(), right[i]) == 0);
  }
  std::vector<std::vector<float>> right;

 private:
  TestApi& test_;
  std::vector<DeviceVector<float>> there_;
};

TEST_CASE("matrices element by element", "[ops][cuda][exact]") {
  for (TestApi& test : Apis()) {
    CudaApi& api = *test.api;
    const StreamHandle stream = test.stream.get();
    Matrices m(test, 8);
    auto& r = m.right;
    REQUIRE(CopyMatrix(api, kExtent, m.at(0), m.at(1), stream).ok());
    m.Expect([&](size_t i) { r[1][i] = r[0][i]; });
    REQUIRE(AddMatrix(api, kExtent, m.at(0), m.at(2), stream).ok());
    m.Expect([&](size_t i) { r[2][i] = r[2][i] + r[0][i]; });
    REQUIRE(MultiplyMatrix(api, kExtent, m.at(0), m.at(3), m.at(6), stream).ok());
    m.Expect([&](size_t i) { r[6][i] = r[0][i] * r[3][i]; });
    REQUIRE(SubtractProduct(api, kExtent, m.at(2), m.at(3), m.at(7), stream).ok());
    m.Expect([&](size_t i) {
      const float product = r[2][i] * r[3][i];
      r[7][i] = r[7][i] - product;
    });
    REQUIRE(ReluGradient(api, kExtent, m.at(3), m.at(2), stream).ok());
    m.Expect([&](size_t i) { r[2][i] = r[3][i] > 0 ? r[2][i] : 0.0f; });
    const CrossStep step = {kExtent, m.at(0), m.at(3)};
    REQUIRE(CrossForward(api, step, m.at(2), m.at(4), stream).ok());
    m.Expect([&](size_t i) { r[4][i] = Fma(r[0][i], r[3][i], r[2][i]); });
    REQUIRE(CrossBackward(api, step, m.at(4), m.at(1), m.at(5), stream).ok());
    m.Expect([&](size_t i) {
      r[1][i] = r[4][i] * r[0][i];
      r[5][i] = Fma(r[4][i], r[3][i], r[5][i]);
    });
    m.Check();

    DeviceVector<uint16_t> rounded(test, kRows * 24, uint16_t{7});
    REQUIRE(RoundToBf16(api, kExtent, m.at(0), rounded.get(), 24, stream).ok());
    const std::vector<uint16_t> got = rounded.Get();
    size_t wrong = 0;
    for (uint32_t i = 0; i < kRows; ++i) {
      for (uint32_t c = 0; c < 24; ++c) {
        wrong += got[i * 24 + c] != (c < kColumns ? Bf16Of(r[0][i * kStride + c]) : 7);
      }
    }
    CHECK(wrong == 0);
    std::vector<float> wide(kRows * kStride, 5.0f);
    DeviceVector<float> wide_there(test, wide);
    REQUIRE(WidenBf16(api, kExtent, rounded.get(), 24, {wide_there.get(), kStride}, stream).ok());
    for (uint32_t i = 0; i < kRows; ++i) {
      for (uint32_t c = 0; c < kColumns; ++c) wide[i * kStride + c] = FromBf16(got[i * 24 + c]);
    }
    CHECK(Differences(wide_there.Get(), wide) == 0);
  }
}

TEST_CASE("columns are summed in blocks of rows, ascending", "[ops][cuda][exact]") {
  for (TestApi& test : Apis()) {
    INFO(test.name);
    for (const uint32_t rows : {1u, 255u, 256u, 257u, 700u}) {
      Matrices m(test, 1);
      const Extent extent = {rows, kColumns};
      DeviceVector<float> scratch(test, ColumnSumScratch(extent)), sums(test, kColumns);
      REQUIRE(ColumnSums(*test.api, extent, m.at(0), scratch.get(), sums.get(), test.stream.get())
                  .ok());
      std::vector<float> right(kColumns);
      for (uint32_t c = 0; c < kColumns; ++c) {
        for (uint32_t block = 0; block < rows; block += kSumRows) {
          float sum = 0;
          for (uint32_t r = block; r < rows && r < block + kSumRows; ++r) {
            sum = sum + m.right[0][r * kStride + c];
          }
          right[c] = right[c] + sum;
        }
      }
      CHECK(Differences(sums.Get(), right) == 0);
    }
  }
}

TEST_CASE("what numbers add to fm's gradients", "[ops][cuda][exact]") {
  for (TestApi& test : Apis()) {
    INFO(test.name);
    CudaApi& api = *test.api;
    constexpr uint32_t kNumbers = 5, kDim = 6;
    Random random(3);
    const std::vector<float> g = random.Floats(kRows), x = random.Floats(kRows * kNumbers);
    const std::vector<float> sums = random.Floats(kRows * kDim);
    DeviceVector<float> gradient(test, g), numeric(test, x), sums_there(test, sums);
    DeviceVector<float> scaled(test, kRows * kDim), squares(test, kRows * kNumbers);
    NumericTerms terms = {kRows,         kNumbers,         kDim,         gradient.get(),
                          numeric.get(), sums_there.get(), scaled.get(), squares.get()};
    REQUIRE(MakeNumericTerms(api, terms, test.stream.get()).ok());
    std::vector<float> right_scaled, right_squares;
    for (uint32_t i = 0; i < kRows; ++i) {
      for (uint32_t d = 0; d < kDim; ++d) right_scaled.push_back(g[i] * sums[i * kDim + d]);
      for (uint32_t j = 0; j < kNumbers; ++j) {
        right_squares.push_back((g[i] * x[i * kNumbers + j]) * x[i * kNumbers + j]);
      }
    }
    CHECK(Differences(scaled.Get(), right_scaled) == 0);
    CHECK(Differences(squares.Get(), right_squares) == 0);

    const std::vector<float> v = random.Floats(kNumbers * kDim), s = random.Floats(kNumbers);
    std::vector<float> to = random.Floats(kNumbers * kDim);
    DeviceVector<float> v_there(test, v), s_there(test, s), to_there(test, to);
    REQUIRE(SubtractSquares(api, kNumbers, kDim, v_there.get(), s_there.get(), to_there.get(),
                            test.stream.get())
                .ok());
    for (uint32_t j = 0; j < kNumbers; ++j) {
      for (uint32_t d = 0; d < kDim; ++d) {
        to[j * kDim + d] = to[j * kDim + d] - v[j * kDim + d] * s[j];
      }
    }
    CHECK(Differences(to_there.Get(), to) == 0);
  }
}

TEST_CASE("what follows a product", "[ops][cuda][exact]") {
  constexpr uint32_t kBits = 128;
  for (TestApi& test : Apis()) {
    CudaApi& api = *test.api;
    const StreamHandle stream = test.stream.get();
    Matrices m(test, 3);
    auto& r = m.right;
    const std::vector<float> bias = Random(5).Floats(kColumns);
    const DeviceVector<float> bias_there(test, bias);
    const DeviceVector<uint8_t> bits(test, kRows * kBits / 8, uint8_t{0xaa});
    const BitMask mask = {bits.get(), kBits};
    REQUIRE(AddBias(api, {kExtent, m.at(0), bias_there.get(), false, {}}, stream).ok());
    m.Expect([&](size_t i) { r[0][i] = r[0][i] + bias[i % kStride]; });
    REQUIRE(AddBias(api, {kExtent, m.at(1), bias_there.get(), true, mask}, stream).ok());
    m.Expect([&](size_t i) {
      const float sum = r[1][i] + bias[i % kStride];
      r[1][i] = sum <= 0 ? 0.0f : sum;
    });
    const std::vector<uint8_t> set = bits.Get();
    const auto bit = [&](size_t i) {
      const size_t row = i / kStride, column = i % kStride;
      return (set[row * (kBits / 8) + column / 8] >> (column % 8) & 1) != 0;
    };
    uint32_t wrong = 0, beyond = 0;
    m.Expect([&](size_t i) { wrong += bit(i) != (r[1][i] > 0); });
    for (size_t row = 0; row < kRows; ++row) beyond += set[row * (kBits / 8) + 2] != 0xaa;
    CHECK(wrong == 0);
    CHECK(beyond == 0);
    REQUIRE(KeepMasked(api, kExtent, mask, m.at(2), stream).ok());
    m.Expect([&](size_t i) { r[2][i] = bit(i) ? r[2][i] : 0.0f; });
    m.Check();
  }
}

}  // namespace
}  // namespace strata::ops::gpu
