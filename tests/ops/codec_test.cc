#include "ops/codec.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "ops/codec_elements.h"
#include "tests/ops/golden_hash.h"

namespace strata::ops {
namespace {

std::vector<float> Decoded(RowCodec codec, const std::vector<float>& row) {
  std::vector<uint8_t> bytes(EncodedRowBytes(codec, row.size()) + 1);
  // At an odd address: no alignment is promised.
  EncodeRow(codec, row.data(), row.size(), bytes.data() + 1);
  std::vector<float> out(row.size());
  DecodeRows(codec, bytes.data() + 1, 1, row.size(), out.data());
  return out;
}

// By the definition: of the two neighbours in bf16 the nearer one, ties to the even.
float NearestBf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const auto low = std::bit_cast<float>(bits & 0xffff0000u);
  const auto high = std::bit_cast<float>((bits & 0xffff0000u) + 0x10000u);
  // Doubles hold all of these; beyond the largest bf16 the neighbour counts as 2^128.
  const double to_low = std::fabs(double(x) - double(low));
  const double up = std::isinf(high) ? std::copysign(std::ldexp(1.0, 128), x) : double(high);
  const double to_high = std::fabs(up - double(x));
  if (to_low != to_high) return to_low < to_high ? low : high;
  return (bits >> 16) % 2 == 0 ? low : high;
}

TEST_CASE("bf16 rounds to the nearest, ties to even", "[ops][codec]") {
  std::vector<float> row;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 257) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (std::isfinite(x)) row.push_back(x);
  }
  for (uint32_t top = 0; top < 0xff80u; ++top) {  // ties, and their neighbours
    for (const uint32_t low : {0x7fffu, 0x8000u, 0x8001u}) {
      const auto x = std::bit_cast<float>(top << 16 | low);
      if (std::isfinite(x)) row.push_back(x);
    }
  }
  const std::vector<float> got = Decoded(RowCodec::kBf16, row);
  size_t wrong = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    const float want = NearestBf16(row[i]);
    wrong += std::memcmp(&want, &got[i], 4) != 0;
  }
  CHECK(wrong == 0);
  CHECK(row.size() > 16'000'000);
}

// 0x7fffffff is what a device computes; it and its like are where a carry runs through the sign.
TEST_CASE("a NaN stays one in 16 bits, with the device's pattern", "[ops][codec]") {
  std::vector<uint32_t> patterns = {0x7fffffffu, 0xffffffffu, 0x7f800001u, 0xff800001u,
                                    0x7fc00000u, 0xffc00000u, 0x7fff8000u, 0x7fff7fffu};
  for (uint32_t bits = 0x7f800001u; bits < 0x7fffff00u; bits += 257) {
    patterns.push_back(bits);
    patterns.push_back(bits | 0x80000000u);
  }
  size_t wrong_bf16 = 0, wrong_fp16 = 0, numbers = 0;
  for (const uint32_t bits : patterns) {
    const auto x = std::bit_cast<float>(bits);
    wrong_bf16 += Bf16Of(x) != 0x7fff;
    wrong_fp16 += Fp16Of(x) != 0x7fff;
    numbers += !std::isnan(Decoded(RowCodec::kBf16, {x})[0]) || !std::isnan(FromFp16(Fp16Of(x)));
  }
  CHECK(wrong_bf16 == 0);
  CHECK(wrong_fp16 == 0);
  CHECK(numbers == 0);
  // The numbers beside them are none.
  CHECK(Bf16Of(std::bit_cast<float>(0x7f800000u)) == 0x7f80);
  CHECK(Bf16Of(std::bit_cast<float>(0xff800000u)) == 0xff80);
  CHECK(Bf16Of(std::bit_cast<float>(0x7f7fffffu)) == 0x7f80);
}

// By the definition in data.proto, with the library's rounding.
std::vector<uint8_t> Int8ByDefinition(const std::vector<float>& row) {
  float most = 0;
  for (const float x : row) most = std::max(most, std::fabs(x));
  const float scale = most / 127.0f;
  std::vector<uint8_t> out(4 + row.size());
  std::memcpy(out.data(), &scale, 4);
  for (size_t i = 0; i < row.size(); ++i) {
    const float q = scale == 0 ? 0 : std::nearbyint(row[i] / scale);
    out[4 + i] = static_cast<uint8_t>(static_cast<int8_t>(std::min(127.0f, std::max(-127.0f, q))));
  }
  return out;
}

TEST_CASE("int8: a scale per row, nearest, ties to even", "[ops][codec]") {
  REQUIRE(std::fegetround() == FE_TONEAREST);
  std::mt19937_64 random(4);
  std::vector<uint8_t> bytes(4 + 64);
  for (int round = 0; round < 200'000; ++round) {
    std::vector<float> row(round % 65);
    const int exponent = static_cast<int>(random() % 270) - 148;  // subnormal rows too
    for (float& x : row) {
      x = std::ldexp(static_cast<float>(static_cast<int64_t>(random() % 2001) - 1000) / 1000.0f,
                     round % 3 == 0 ? exponent : 0);
      if (round % 5 == 0)
        x = static_cast<float>(static_cast<int>(random() % 509) - 254) / 2;  // ties
    }
    EncodeRow(RowCodec::kInt8, row.data(), row.size(), bytes.data());
    const std::vector<uint8_t> want = Int8ByDefinition(row);
    REQUIRE(std::memcmp(want.data(), bytes.data(), want.size()) == 0);
    float scale;
    std::memcpy(&scale, want.data(), 4);
    const std::vector<float> got = Decoded(RowCodec::kInt8, row);
    bool close = true;
    for (size_t i = 0; i < row.size(); ++i) {
      close &= got[i] == static_cast<float>(static_cast<int8_t>(want[4 + i])) * scale;
      // A scale of full precision: off by half a step, and what the scale itself is rounded.
      if (scale > 1e-37f) close &= std::fabs(got[i] - row[i]) <= scale * 0.50002f;
    }
    REQUIRE(close);
  }
}

TEST_CASE("rows of zeros, of nothing, and of the smallest number", "[ops][codec]") {
  CHECK(Decoded(RowCodec::kInt8, {0.0f, -0.0f}) == std::vector<float>{0.0f, 0.0f});
  CHECK(Decoded(RowCodec::kInt8, {1e-45f}) == std::vector<float>{0.0f});
  CHECK(Decoded(RowCodec::kInt8, {}).empty());
  CHECK(Decoded(RowCodec::kBf16, {}).empty());
  CHECK(std::signbit(Decoded(RowCodec::kBf16, {-0.0f})[0]));
  const std::vector<float> exact = {1.0f, -127.0f, 64.0f, 127.0f};
  CHECK(Decoded(RowCodec::kInt8, exact) == exact);
  CHECK(Decoded(RowCodec::kFloat32, {0.1f}) == std::vector<float>{0.1f});
  CHECK(EncodedRowBytes(RowCodec::kFloat32, 3) == 12);
  CHECK(EncodedRowBytes(RowCodec::kBf16, 3) == 6);
  CHECK(EncodedRowBytes(RowCodec::kInt8, 3) == 7);
}

TEST_CASE("encoded bits are those of every build", "[ops][codec]") {
  std::mt19937_64 random(9);
  GoldenHash hash;
  for (const RowCodec codec : {RowCodec::kBf16, RowCodec::kInt8}) {
    for (int round = 0; round < 2000; ++round) {
      std::vector<float> row(1 + round % 40);
      for (float& x : row) x = static_cast<float>(static_cast<int64_t>(random())) * 1e-20f;
      std::vector<uint8_t> bytes(EncodedRowBytes(codec, row.size()));
      EncodeRow(codec, row.data(), row.size(), bytes.data());
      for (const uint8_t b : bytes) hash.Add(uint32_t{b});
      hash.Add(Decoded(codec, row));
    }
  }
  CHECK(hash.value() == 0x820cb19daa87f785);
}

}  // namespace
}  // namespace strata::ops
