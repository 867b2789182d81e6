#include "ops/codec.h"

#include <bit>
#include <cstring>

namespace strata::ops {
namespace {

uint16_t ToBf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  // Half of the last place, less one where the last bit is even. A carry goes into the exponent, as
  // it should.
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// x rounded to the nearest integer, ties to even, for |x| < 2^22: adding 1.5 * 2^23 leaves no bits
// below one.
int32_t Nearest(float x) {
  constexpr float kShift = 12582912.0f;
  return std::bit_cast<int32_t>(x + kShift) - std::bit_cast<int32_t>(kShift);
}

void EncodeInt8(const float* row, size_t dim, uint8_t* out) {
  float most = 0;
  for (size_t i = 0; i < dim; ++i) {
    const float magnitude = std::bit_cast<float>(std::bit_cast<uint32_t>(row[i]) & 0x7fffffffu);
    most = magnitude > most ? magnitude : most;
  }
  const float scale = most / 127.0f;
  std::memcpy(out, &scale, sizeof scale);
  out += sizeof scale;
  if (scale == 0.0f) {
    std::memset(out, 0, dim);
    return;
  }
  for (size_t i = 0; i < dim; ++i) {
    // A subnormal scale is rounded coarsely: the quotient may be up to twice 127.
    int32_t q = Nearest(row[i] / scale);
    q = q > 127 ? 127 : q;
    q = q < -127 ? -127 : q;
    out[i] = static_cast<uint8_t>(static_cast<int8_t>(q));
  }
}

}  // namespace

void EncodeRow(RowCodec codec, const float* row, size_t dim, uint8_t* out) {
  switch (codec) {
    case RowCodec::kFloat32:
      std::memcpy(out, row, dim * sizeof(float));
      return;
    case RowCodec::kBf16:
      for (size_t i = 0; i < dim; ++i) {
        const uint16_t half = ToBf16(row[i]);
        std::memcpy(out + 2 * i, &half, sizeof half);
      }
      return;
    case RowCodec::kInt8:
      return EncodeInt8(row, dim, out);
  }
}

void DecodeRows(RowCodec codec, const uint8_t* rows, size_t count, size_t dim, float* out) {
  switch (codec) {
    case RowCodec::kFloat32:
      std::memcpy(out, rows, count * dim * sizeof(float));
      return;
    case RowCodec::kBf16:
      for (size_t i = 0; i < count * dim; ++i) {
        uint16_t half;
        std::memcpy(&half, rows + 2 * i, sizeof half);
        out[i] = std::bit_cast<float>(uint32_t{half} << 16);
      }
      return;
    case RowCodec::kInt8:
      for (size_t r = 0; r < count; ++r, rows += 4 + dim, out += dim) {
        float scale;
        std::memcpy(&scale, rows, sizeof scale);
        for (size_t i = 0; i < dim; ++i) {
          out[i] = static_cast<float>(static_cast<int8_t>(rows[4 + i])) * scale;
        }
      }
      return;
  }
}

}  // namespace strata::ops
