// Kernels that compute element by element, against the host's functions, bit for bit.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "ops/codec.h"
#include "ops/codec_elements.h"
#include "ops/cuda/kernel/row_block.h"
#include "ops/cuda/rows/initialize.h"
#include "ops/cuda/rows/row_codec.h"
#include "ops/initializer.h"
#include "ops/optimizer.h"
#include "tests/ops/cuda/api/test_apis.h"

namespace strata::ops::gpu {
namespace {

using testing::Apis;
using testing::DeviceVector;
using testing::Differences;
using testing::Random;
using testing::TestApi;

TEST_CASE("new rows are the host's, to the bit", "[ops][cuda][exact]") {
  constexpr uint32_t kRows = 23, kTableRows = 50;
  for (TestApi& test : Apis()) {
    for (InitializerKind kind :
         {InitializerKind::kZero, InitializerKind::kUniform, InitializerKind::kNormal}) {
      for (OptimizerKind rule :
           {OptimizerKind::kSgd, OptimizerKind::kAdam, OptimizerKind::kRowwiseAdagrad}) {
        for (uint32_t dim : {1u, 4u, 6u, 17u, 32u}) {
          OptimizerConfig optimizer;
          optimizer.kind = rule;
          optimizer.initial_accumulator = 0.25f;
          const uint32_t offset = (dim + 3) / 4 * 4, stride = offset + 2 * dim + 4;
          const InitializerConfig initializer = {kind, 0.3f};
          std::vector<float> want(kTableRows * stride / 4 * 4, 7.0f);
          want.resize(kTableRows * stride, 7.0f);
          std::vector<uint64_t> keys(kRows);
          std::vector<uint32_t> row_of(kRows);
          Random random(dim);
          for (uint32_t i = 0; i < kRows; ++i) {
            keys[i] = (uint64_t{random.Next()} << 32) | random.Next();
            row_of[i] = i == 5 ? kNoRow : (i * 7 + 3) % kTableRows;
          }
          DeviceVector<float> table(test, want);
          DeviceVector<uint64_t> keys_there(test, keys);
          DeviceVector<uint32_t> rows_there(test, row_of);
          for (uint32_t i = 0; i < kRows; ++i) {
            if (row_of[i] == kNoRow) continue;
            float* row = want.data() + row_of[i] * stride;
            InitialRow(initializer, 11, 3, keys[i], 2, dim, row);
            InitState(optimizer, dim, row + offset);
          }
          InitializeTask task;
          task.table = {table.get(), stride};
          task.state_offset = offset;
          task.dim = dim;
          task.seed = 11;
          task.table_number = 3;
          task.first_element = 2;
          task.keys = keys_there.get();
          task.row_of = rows_there.get();
          task.rows.most = kRows;
          REQUIRE(Initialize(*test.api, initializer, optimizer, task, test.stream.get()).ok());
          INFO(test.name << ", kind " << int(kind) << ", rule " << int(rule) << ", dim " << dim);
          CHECK(Differences(table.Get(), want) == 0);
        }
      }
    }
  }
}

// What the host's codec makes of rows; binary16 by its elements.
std::vector<uint8_t> Packed(PackedFormat format, const std::vector<float>& rows, uint32_t n,
                            uint32_t dim) {
  const size_t bytes = PackedRowBytes(format, dim);
  std::vector<uint8_t> out(n * bytes);
  for (uint32_t r = 0; r < n; ++r) {
    const float* row = rows.data() + r * dim;
    uint8_t* to = out.data() + r * bytes;
    if (format == PackedFormat::kFp16) {
      for (uint32_t d = 0; d < dim; ++d) {
        const uint16_t half = Fp16Of(row[d]);
        std::memcpy(to + 2 * d, &half, 2);
      }
    } else {
      EncodeRow(format == PackedFormat::kBf16 ? RowCodec::kBf16 : RowCodec::kInt8, row, dim, to);
    }
  }
  return out;
}

std::vector<float> Unpacked(PackedFormat format, const std::vector<uint8_t>& packed, uint32_t n,
                            uint32_t dim) {
  std::vector<float> out(n * dim);
  if (format == PackedFormat::kFp16) {
    for (size_t i = 0; i < out.size(); ++i) {
      uint16_t half;
      std::memcpy(&half, packed.data() + 2 * i, 2);
      out[i] = FromFp16(half);
    }
  } else {
    DecodeRows(format == PackedFormat::kBf16 ? RowCodec::kBf16 : RowCodec::kInt8, packed.data(), n,
               dim, out.data());
  }
  return out;
}

TEST_CASE("packed rows are the host's, to the bit", "[ops][cuda][exact]") {
  constexpr uint32_t kRows = 65;
  for (TestApi& test : Apis()) {
    for (PackedFormat format : {PackedFormat::kBf16, PackedFormat::kFp16, PackedFormat::kInt8}) {
      for (uint32_t dim : {1u, 3u, 4u, 8u, 10u, 64u, 100u}) {
        std::vector<float> rows = Random(dim).Floats(kRows * dim);
        for (size_t i = 0; i < rows.size(); ++i) {
          rows[i] = std::ldexp(rows[i], static_cast<int>(i / dim * 3 % 200) - 140);
        }
        std::fill(rows.begin(), rows.begin() + dim, 0.0f);
        const size_t bytes = kRows * PackedRowBytes(format, dim);
        DeviceVector<float> rows_there(test, rows), back(test, rows.size());
        DeviceVector<uint8_t> packed(test, bytes, uint8_t{9});
        REQUIRE(PackRows(*test.api, format, rows_there.get(), dim, dim, {nullptr, kRows},
                         packed.get(), test.stream.get())
                    .ok());
        REQUIRE(UnpackRows(*test.api, format, packed.get(), dim, {nullptr, kRows}, back.get(), dim,
                           test.stream.get())
                    .ok());
        const std::vector<uint8_t> want = Packed(format, rows, kRows, dim);
        INFO(test.name << ", format " << int(format) << ", dim " << dim);
        CHECK(packed.Get() == want);
        CHECK(Differences(back.Get(), Unpacked(format, want, kRows, dim)) == 0);
      }
    }
  }
}

TEST_CASE("a NaN in a packed row stays one", "[ops][cuda][exact]") {
  constexpr uint32_t kDim = 6;
  const std::vector<uint32_t> bits = {0x7fffffffu, 0xffffffffu, 0x7f800001u,
                                      0x3f800000u, 0x7f800000u, 0xffc00000u};
  std::vector<float> row;
  for (const uint32_t b : bits) row.push_back(std::bit_cast<float>(b));
  for (TestApi& test : Apis()) {
    for (PackedFormat format : {PackedFormat::kBf16, PackedFormat::kFp16}) {
      INFO(test.name << ", format " << int(format));
      DeviceVector<float> there(test, row);
      DeviceVector<uint8_t> packed(test, 2 * kDim, uint8_t{9});
      REQUIRE(PackRows(*test.api, format, there.get(), kDim, kDim, {nullptr, 1}, packed.get(),
                       test.stream.get())
                  .ok());
      std::vector<uint16_t> got(kDim);
      std::memcpy(got.data(), packed.Get().data(), 2 * kDim);
      const uint16_t one = format == PackedFormat::kBf16 ? 0x3f80 : 0x3c00;
      const uint16_t infinite = format == PackedFormat::kBf16 ? 0x7f80 : 0x7c00;
      CHECK(got == std::vector<uint16_t>{0x7fff, 0x7fff, 0x7fff, one, infinite, 0x7fff});
    }
  }
}

// By the definition: of all finite binary16 numbers the nearest, ties to the even.
TEST_CASE("binary16 rounds to the nearest, ties to even", "[ops][codec]") {
  const auto value = [](uint32_t half) {  // 0 <= half < 0x7c00
    const int exponent = static_cast<int>(half >> 10);
    const double mantissa = half & 0x3ff;
    return exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  };
  size_t wrong = 0;
  for (uint32_t half = 0; half < 0x7c00; ++half) {
    wrong += FromFp16(static_cast<uint16_t>(half)) != value(half);
    wrong += Fp16Of(static_cast<float>(value(half))) != half;
    wrong += Fp16Of(static_cast<float>(-value(half))) != (half | 0x8000);
    // Between this number and the next (beyond the last: 2^16), and on either side of the middle.
    const double next = half == 0x7bff ? 65536.0 : value(half + 1);
    const auto middle = static_cast<float>((value(half) + next) / 2);
    wrong += Fp16Of(middle) != (half % 2 == 0 ? half : half + 1);
    wrong += Fp16Of(std::nextafter(middle, 0.0f)) != half;
    wrong += Fp16Of(std::nextafter(middle, 1e9f)) != half + 1;
  }
  CHECK(wrong == 0);
  CHECK(Fp16Of(INFINITY) == 0x7c00);
  CHECK(Fp16Of(-1e30f) == 0xfc00);
  CHECK(std::isinf(FromFp16(0x7c00)));
  CHECK(std::isnan(FromFp16(0x7c01)));
  CHECK(std::signbit(FromFp16(0x8000)));
}

}  // namespace
}  // namespace strata::ops::gpu
