#include "ops/codec.h"

#include <cstring>

#include "ops/codec_elements.h"
#include "ops/exact_math.h"
#include "proto/core/mutation.h"

namespace strata::ops {
namespace {

uint16_t Bf16(float x) {
  if (STRATA_MUTATION("codec.nan_is_a_number")) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  }
  return Bf16Of(x);
}

void EncodeInt8(const float* row, size_t dim, uint8_t* out) {
  float most = 0;
  for (size_t i = 0; i < dim; ++i) {
    const float magnitude = exact::Abs(row[i]);
    most = magnitude > most ? magnitude : most;
  }
  const float scale = Int8Scale(most);
  std::memcpy(out, &scale, sizeof scale);
  out += sizeof scale;
  if (scale == 0.0f) {
    std::memset(out, 0, dim);
    return;
  }
  for (size_t i = 0; i < dim; ++i) out[i] = static_cast<uint8_t>(Int8Of(row[i], scale));
}

}  // namespace

void EncodeRow(RowCodec codec, const float* row, size_t dim, uint8_t* out) {
  switch (codec) {
    case RowCodec::kFloat32:
      std::memcpy(out, row, dim * sizeof(float));
      return;
    case RowCodec::kBf16:
      for (size_t i = 0; i < dim; ++i) {
        const uint16_t half = Bf16(row[i]);
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
        out[i] = FromBf16(half);
      }
      return;
    case RowCodec::kInt8:
      for (size_t r = 0; r < count; ++r, rows += 4 + dim, out += dim) {
        float scale;
        std::memcpy(&scale, rows, sizeof scale);
        for (size_t i = 0; i < dim; ++i) {
          out[i] = FromInt8(static_cast<int8_t>(rows[4 + i]), scale);
        }
      }
      return;
  }
}

}  // namespace strata::ops
