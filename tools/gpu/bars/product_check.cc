#include "tools/gpu/bars/product_check.h"

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"

namespace strata::gpu_check {
namespace {

using ops::gpu::CudaApi;
using ops::gpu::MatmulEpilogue;
using ops::gpu::MatmulPrecision;
using ops::gpu::MatmulShape;
using ops::gpu::StreamHandle;

constexpr double kBf16Rounding = 1.0 / 256;

// (n) elements of the device, as floats.
absl::StatusOr<std::vector<float>> Fetch(CudaApi* api, const void* from, size_t n, bool bf16,
                                         StreamHandle stream) {
  std::vector<float> values(n);
  std::vector<uint16_t> halves(bf16 ? n : 0);
  void* const to = bf16 ? static_cast<void*>(halves.data()) : values.data();
  absl::Status status = api->CopyAsync(to, from, n * (bf16 ? 2 : 4), stream);
  if (status.ok()) status = api->Synchronize(stream);
  if (!status.ok()) return status;
  for (size_t i = 0; i < halves.size(); ++i) {
    const uint32_t bits = uint32_t{halves[i]} << 16;
    std::memcpy(&values[i], &bits, sizeof bits);
  }
  return values;
}

struct Factors {
  std::vector<float> a, b, bias, passed;
};

absl::StatusOr<Factors> FetchFactors(CudaApi* api, const MlpProduct& product, StreamHandle stream) {
  const MatmulShape& s = product.shape;
  const bool bf16 = s.precision == MatmulPrecision::kBf16;
  Factors factors;
  const struct {
    const void* from;
    size_t n;
    bool bf16;
    std::vector<float>* to;
  } wanted[] = {
      {product.operands.a, size_t{s.m} * s.k, bf16, &factors.a},
      {product.operands.b, size_t{s.k} * s.n, bf16, &factors.b},
      {product.operands.bias, s.n, s.bf16_out, &factors.bias},
      {product.passed, size_t{s.m} * s.n, s.bf16_out, &factors.passed},
  };
  for (const auto& piece : wanted) {
    if (piece.from == nullptr) continue;
    auto fetched = Fetch(api, piece.from, piece.n, piece.bf16, stream);
    if (!fetched.ok()) return fetched.status();
    *piece.to = *std::move(fetched);
  }
  return factors;
}

// Of each element: its value in double, the sum of its terms' magnitudes, and the magnitude of what
// is rounded where C is bf16.
struct Expected {
  std::vector<double> value, magnitude, rounded;
};

Expected Multiply(const MatmulShape& s, const Factors& factors) {
  Expected expected;
  expected.value.resize(size_t{s.m} * s.n);
  expected.magnitude.resize(expected.value.size());
  for (size_t i = 0; i < s.m; ++i) {
    for (size_t l = 0; l < s.k; ++l) {
      const double a = factors.a[s.transpose_a ? l * s.m + i : i * s.k + l];
      for (size_t j = 0; j < s.n; ++j) {
        const double term = a * factors.b[s.transpose_b ? j * s.k + l : l * s.n + j];
        expected.value[i * s.n + j] += term;
        expected.magnitude[i * s.n + j] += std::fabs(term);
      }
    }
  }
  return expected;
}

void AddEpilogue(const MatmulShape& s, const Factors& factors, Expected* expected) {
  const bool biased = s.epilogue == MatmulEpilogue::kBias ||
                      s.epilogue == MatmulEpilogue::kBiasRelu ||
                      s.epilogue == MatmulEpilogue::kBiasReluMask;
  for (size_t at = 0; at < expected->value.size(); ++at) {
    double& x = expected->value[at];
    if (biased) {
      x += factors.bias[at % s.n];
      expected->magnitude[at] += std::fabs(factors.bias[at % s.n]);
      if (s.epilogue != MatmulEpilogue::kBias && x < 0) x = 0;
    } else if (!factors.passed.empty() && !(factors.passed[at] > 0)) {
      x = 0;
      expected->magnitude[at] = 0;
    }
    expected->rounded.push_back(std::fabs(x));
  }
}

absl::Status Compare(const MlpProduct& product, const char* what, const std::vector<float>& got,
                     const Expected& expected) {
  const double tolerance = ToleranceOf(product.shape.precision);
  double worst = 0;
  size_t worst_at = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double allowed = tolerance * expected.magnitude[i] +
                           (product.shape.bf16_out ? kBf16Rounding : 0) * expected.rounded[i] +
                           1e-30;
    const double error = std::fabs(got[i] - expected.value[i]) / allowed;
    if (error <= worst) continue;  // NaN is not
    worst = error;
    worst_at = i;
    if (std::isnan(error)) break;
  }
  if (worst <= 1) return absl::OkStatus();
  return absl::InternalError(absl::StrFormat(
      "%s, %s: element %d is %.9g instead of %.9g, %.3g times what is allowed", product.name, what,
      worst_at, got[worst_at], expected.value[worst_at], worst));
}

// Sums of the columns of C as the device should have it; of C as it was rounded, perhaps.
Expected ColumnSums(const MatmulShape& s, const Expected& c) {
  Expected sums;
  sums.value.resize(s.n);
  sums.magnitude.resize(s.n);
  sums.rounded.resize(s.n);
  for (size_t at = 0; at < c.value.size(); ++at) {
    sums.value[at % s.n] += c.value[at];
    sums.magnitude[at % s.n] += c.magnitude[at];
    sums.rounded[at % s.n] += c.rounded[at];
  }
  return sums;
}

}  // namespace

double ToleranceOf(MatmulPrecision precision) {
  return precision == MatmulPrecision::kTf32 ? 2e-3 : 1e-5;
}

absl::Status CheckProduct(CudaApi* api, const MlpProduct& product, StreamHandle stream) {
  const MatmulShape& s = product.shape;
  const auto factors = FetchFactors(api, product, stream);
  if (!factors.ok()) return factors.status();
  const auto c = Fetch(api, product.operands.c, size_t{s.m} * s.n, s.bf16_out, stream);
  if (!c.ok()) return c.status();
  Expected expected = Multiply(s, *factors);
  AddEpilogue(s, *factors, &expected);
  const absl::Status status = Compare(product, "result", *c, expected);
  if (!status.ok() || s.epilogue != MatmulEpilogue::kReluGradientBias) return status;
  return Compare(product, "bias gradient", factors->bias, ColumnSums(s, expected));
}

}  // namespace strata::gpu_check
