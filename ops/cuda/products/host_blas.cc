#include "ops/cuda/products/host_blas.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "ops/codec_elements.h"
#include "ops/cuda/kernel/kernel.h"
#include "ops/exact_math.h"

namespace strata::ops::gpu {
namespace {

constexpr uint32_t kColumns = 64;  // of C that one item has: a whole number of mask bytes

// As a device does it: a NaN is the device's, which the sum would make -0.
float Tf32Of(float x) {
  const uint32_t bits = exact::Bits(x);
  return exact::FromBits(IsNanBits(bits) ? 0x7fffffffu : (bits + 0x1000u) & ~0x1fffu);
}

float LoadFactor(const void* p, size_t i, MatmulPrecision precision) {
  if (precision == MatmulPrecision::kBf16) return FromBf16(static_cast<const uint16_t*>(p)[i]);
  const float x = static_cast<const float*>(p)[i];
  return precision == MatmulPrecision::kTf32 ? Tf32Of(x) : x;
}

float LoadResult(const void* p, size_t i, bool bf16) {
  return bf16 ? FromBf16(static_cast<const uint16_t*>(p)[i]) : static_cast<const float*>(p)[i];
}

void StoreResult(float x, void* p, size_t i, bool bf16) {
  if (bf16) {
    static_cast<uint16_t*>(p)[i] = Bf16Of(x);
  } else {
    static_cast<float*>(p)[i] = x;
  }
}

// One row of C by one block of columns.
struct ProductBlock {
  static constexpr uint32_t kLanes = 1;
  MatmulShape s;
  MatmulOperands o;

  uint32_t Blocks() const { return (s.n + kColumns - 1) / kColumns; }
  uint64_t items() const { return uint64_t{s.m} * Blocks(); }

  template <typename Group>
  void operator()(const Group&, uint64_t item) const {
    const size_t row = item / Blocks();
    const size_t first = item % Blocks() * kColumns;
    const size_t columns = std::min<size_t>(kColumns, s.n - first);
    float sum[kColumns] = {};
    for (size_t l = 0; l < s.k; ++l) {
      const float a =
          LoadFactor(o.a, s.transpose_a ? l * s.lda + row : row * s.lda + l, s.precision);
      if (!s.transpose_b && s.precision == MatmulPrecision::kFp32) {
        const float* const b = static_cast<const float*>(o.b) + l * s.ldb + first;
        for (size_t j = 0; j < columns; ++j) sum[j] = sum[j] + a * b[j];
        continue;
      }
      for (size_t j = 0; j < columns; ++j) {
        const size_t column = first + j;
        sum[j] =
            sum[j] + a * LoadFactor(o.b, s.transpose_b ? column * s.ldb + l : l * s.ldb + column,
                                    s.precision);
      }
    }
    for (size_t j = 0; j < columns; ++j) Finish(row, first + j, sum[j]);
  }

  void Finish(size_t row, size_t column, float x) const {
    const size_t at = row * s.ldc + column;
    if (s.add) x = LoadResult(o.c, at, s.bf16_out) + x;
    uint8_t* const mask = static_cast<uint8_t*>(o.mask) +
                          (o.mask == nullptr ? 0 : (row * s.mask_stride + column) / 8);
    const auto bit = static_cast<uint8_t>(1u << (column % 8));
    switch (s.epilogue) {
      case MatmulEpilogue::kNone:
        break;
      case MatmulEpilogue::kBias:
        x = x + LoadResult(o.bias, column, s.bf16_out);
        break;
      case MatmulEpilogue::kBiasReluMask:
      case MatmulEpilogue::kBiasRelu:
        x = x + LoadResult(o.bias, column, s.bf16_out);
        if (s.epilogue == MatmulEpilogue::kBiasReluMask) {
          *mask = static_cast<uint8_t>(x > 0.0f ? *mask | bit : *mask & ~bit);
        }
        // What is not a number stays one.
        x = x <= 0.0f ? 0.0f : x;
        break;
      case MatmulEpilogue::kReluGradient:
      case MatmulEpilogue::kReluGradientBias:
        x = (*mask & bit) != 0 ? x : 0.0f;
        break;
    }
    StoreResult(x, o.c, at, s.bf16_out);
  }
};

// The sum of a column of C, ascending.
struct ColumnOfC {
  static constexpr uint32_t kLanes = 1;
  MatmulShape s;
  MatmulOperands o;

  uint64_t items() const { return s.n; }
  template <typename Group>
  void operator()(const Group&, uint64_t column) const {
    float sum = 0.0f;
    for (size_t i = 0; i < s.m; ++i) sum = sum + LoadResult(o.c, i * s.ldc + column, s.bf16_out);
    StoreResult(sum, o.bias, column, s.bf16_out);
  }
};

class HostBlas : public Blas {
 public:
  explicit HostBlas(CudaApi* api) : api_(api) {}
  const std::string& path() const override { return path_; }
  const std::string& version() const override { return version_; }

  absl::Status Multiply(const MatmulShape& shape, const MatmulOperands& operands,
                        StreamHandle stream) override {
    const ProductBlock block = {shape, operands};
    absl::Status status = LaunchOver(*api_, "product", block, block.items(), stream);
    if (status.ok() && shape.epilogue == MatmulEpilogue::kReluGradientBias) {
      status = LaunchOver(*api_, "product's columns", ColumnOfC{shape, operands}, shape.n, stream);
    }
    return status;
  }

 private:
  CudaApi* const api_;
  const std::string path_ = "host threads", version_ = "1";
};

}  // namespace

std::unique_ptr<Blas> MakeHostBlas(CudaApi* api) { return std::make_unique<HostBlas>(api); }

}  // namespace strata::ops::gpu
