#include "tests/tools/gpu/bars/host_blas.h"

#include <cstring>

namespace strata::gpu_check::testing {
namespace {

using ops::gpu::MatmulEpilogue;
using ops::gpu::MatmulOperands;
using ops::gpu::MatmulPrecision;
using ops::gpu::MatmulShape;

double Load(const void* p, size_t i, bool bf16) {
  if (!bf16) return static_cast<const float*>(p)[i];
  const uint32_t bits = uint32_t{static_cast<const uint16_t*>(p)[i]} << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

// Rounds to the nearest, where that is wanted.
void Store(double x, void* p, size_t i, bool bf16) {
  const auto value = static_cast<float>(x);
  if (!bf16) {
    static_cast<float*>(p)[i] = value;
    return;
  }
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  static_cast<uint16_t*>(p)[i] = static_cast<uint16_t>((bits + 0x8000) >> 16);
}

// Its bit of the mask, as this library lays masks out.
uint8_t& MaskByte(const MatmulShape& s, const MatmulOperands& o, size_t i, size_t j) {
  return static_cast<uint8_t*>(o.mask)[(i * s.mask_stride + j) / 8];
}

double Epilogue(const MatmulShape& s, const MatmulOperands& o, size_t i, size_t j, double x) {
  const auto bit = static_cast<uint8_t>(1u << (j % 8));
  switch (s.epilogue) {
    case MatmulEpilogue::kNone:
      return x;
    case MatmulEpilogue::kBias:
      return x + Load(o.bias, j, s.bf16_out);
    case MatmulEpilogue::kBiasRelu:
    case MatmulEpilogue::kBiasReluMask:
      x += Load(o.bias, j, s.bf16_out);
      if (s.epilogue == MatmulEpilogue::kBiasReluMask) {
        uint8_t& byte = MaskByte(s, o, i, j);
        byte = static_cast<uint8_t>(x > 0 ? byte | bit : byte & ~bit);
      }
      return x > 0 ? x : 0;
    case MatmulEpilogue::kReluGradient:
    case MatmulEpilogue::kReluGradientBias:
      return (MaskByte(s, o, i, j) & bit) != 0 ? x : 0;
  }
  return x;
}

}  // namespace

absl::Status HostBlas::Multiply(const MatmulShape& s, const MatmulOperands& o,
                                ops::gpu::StreamHandle) {
  ++products;
  if (s.epilogue == MatmulEpilogue::kNone) ++bare;
  const bool bf16 = s.precision == MatmulPrecision::kBf16;
  std::vector<double> columns(s.n);
  for (size_t i = 0; i < s.m; ++i) {
    for (size_t j = 0; j < s.n; ++j) {
      double x = 0;
      for (size_t l = 0; l < s.k; ++l) {
        x += Load(o.a, s.transpose_a ? l * s.lda + i : i * s.lda + l, bf16) *
             Load(o.b, s.transpose_b ? j * s.ldb + l : l * s.ldb + j, bf16);
      }
      x = Epilogue(s, o, i, j, x);
      if (i * s.n + j == 1 && x != 0 && s.precision == wrong) x += error;
      columns[j] += x;
      Store(x, o.c, i * s.ldc + j, s.bf16_out);
    }
  }
  if (s.epilogue == MatmulEpilogue::kReluGradientBias) {
    for (size_t j = 0; j < s.n; ++j) Store(columns[j], o.bias, j, s.bf16_out);
  }
  return absl::OkStatus();
}

}  // namespace strata::gpu_check::testing
