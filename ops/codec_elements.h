// The elements of encoded rows (codec.h), by integer operations (EXACT.md rule 8): shared by the
// host's code and the device's.
// Tested by tests/ops/codec_test.cc, tests/ops/cuda/elements_test.cc
#ifndef STRATA_OPS_CODEC_ELEMENTS_H_
#define STRATA_OPS_CODEC_ELEMENTS_H_

#include <cstdint>

#include "ops/exact_math.h"
#include "ops/inline.h"

namespace strata::ops {

// What a device makes of every NaN, in bfloat16 and in binary16 alike.
inline constexpr uint16_t kNan16 = 0x7fffu;

STRATA_HD bool IsNanBits(uint32_t bits) { return (bits & 0x7fffffffu) > 0x7f800000u; }

// bfloat16, the upper half of a float: rounded to nearest, ties to even; kNan16 of every NaN.
STRATA_HD uint16_t Bf16Of(float x) {
  const uint32_t bits = exact::Bits(x);
  // By the sum below a device's own NaN, 0x7fffffff, would be -0.
  if (IsNanBits(bits)) return kNan16;
  // Half of the last place, less one where the last bit is even. A carry goes into the exponent, as
  // it should.
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

STRATA_HD float FromBf16(uint16_t half) {
  return exact::FromBits(static_cast<uint32_t>(half) << 16);
}

// IEEE 754's binary16: rounded to nearest, ties to even, subnormal numbers kept; beyond 65519.99
// infinite; kNan16 of every NaN.
STRATA_HD uint16_t Fp16Of(float x) {
  const uint32_t bits = exact::Bits(x);
  if (IsNanBits(bits)) return kNan16;
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 2^16 and more
  if (magnitude < 0x38800000u) {  // below 2^-14: in units of 2^-24
    // Adding 1/2 leaves no bits below 2^-24: the hardware rounds to nearest, ties to even.
    const float shifted = exact::FromBits(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (exact::Bits(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

STRATA_HD float FromFp16(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u) return exact::FromBits(sign | 0x7f800000u | (magnitude << 13));
  if (magnitude < 0x400u) {
    const float value = static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f;
    return exact::FromBits(sign | exact::Bits(value));
  }
  return exact::FromBits(sign | ((magnitude << 13) + 0x38000000u));
}

// A row's scale, by the largest magnitude of its elements.
STRATA_HD float Int8Scale(float most) { return exact::Div(most, 127.0f); }

// x / scale rounded to the nearest integer, ties to even, at most 127 in magnitude. A scale of 0:
// 0.
STRATA_HD int8_t Int8Of(float x, float scale) {
  if (scale == 0.0f) return 0;
  // Adding 1.5 * 2^23 leaves no bits below one. A subnormal scale is rounded coarsely: the quotient
  // may be up to twice 127.
  const float shifted = exact::Div(x, scale) + 0x1.8p+23f;
  int32_t q = static_cast<int32_t>(exact::Bits(shifted) - 0x4b400000u);
  q = q > 127 ? 127 : q;
  q = q < -127 ? -127 : q;
  return static_cast<int8_t>(q);
}

STRATA_HD float FromInt8(int8_t q, float scale) { return static_cast<float>(q) * scale; }

}  // namespace strata::ops

#endif  // STRATA_OPS_CODEC_ELEMENTS_H_
