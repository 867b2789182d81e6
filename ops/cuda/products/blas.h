// Matrix products on a device, through cuBLASLt, with bias and ReLU in the same kernels. Bits are
// the library's: they belong to the numerics id (ops/EXACT.md rules 10 and 11).
#ifndef STRATA_OPS_CUDA_PRODUCTS_BLAS_H_
#define STRATA_OPS_CUDA_PRODUCTS_BLAS_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/memory.h"

namespace strata::ops::gpu {

// How factors are multiplied; sums are in fp32, and so is everything in memory but bf16's factors.
enum class MatmulPrecision : uint8_t { kFp32, kTf32, kBf16 };

// What happens to an element of C after its sum.
enum class MatmulEpilogue : uint8_t {
  kNone,
  kBias,              // + bias[column]
  kBiasRelu,          // max(x + bias[column], 0)
  kBiasReluMask,      // the same, and one bit an element into `mask`: whether it passed
  kReluGradient,      // x where the mask's bit is set, else 0
  kReluGradientBias,  // the same, and bias[column] = the sum of the column
};

// C (m, n) = A (m, k) B (k, n), row-major; a transposed factor stands as (k, m) or (n, k).
struct MatmulShape {
  uint32_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  uint32_t lda = 0, ldb = 0, ldc = 0;  // elements between rows as they stand
  uint32_t mask_stride = 0;            // bits between rows of the mask: n rounded up to 128
  MatmulPrecision precision = MatmulPrecision::kFp32;
  MatmulEpilogue epilogue = MatmulEpilogue::kNone;
  bool add = false;       // C is added to instead of overwritten
  bool bf16_out = false;  // C is bf16 (kBf16 only)
  auto operator<=>(const MatmulShape&) const = default;
};

// All in device memory, at multiples of 16 bytes.
struct MatmulOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  void* bias = nullptr;  // (n) floats, or bf16 where C is
  void* mask = nullptr;  // (m, mask_stride) bits
};

// One thread at a time; products on one stream at a time, since they share a workspace.
class Blas {
 public:
  struct Options {
    std::string library;  // a file, instead of the search (blas_search.h)
    size_t workspace_bytes = size_t{32} << 20;
    // What a process should have for it: the workspace, and what products in two parts may need.
    static constexpr size_t kBytes = (size_t{32} << 20) + (size_t{4} << 20);
  };
  // kNotFound names every place that was tried. Products go through the arena's api (CallLibrary);
  // both outlive the result. What the library has no kernel for is done in two parts
  // (split_blas.h).
  static absl::StatusOr<std::unique_ptr<Blas>> Open(Arena* arena, const Options& options);
  virtual ~Blas() = default;

  virtual const std::string& path() const = 0;     // of the library
  virtual const std::string& version() const = 0;  // "13.0.2"

  // The first product of a shape chooses an algorithm, and allocates on the host; later ones do
  // neither. Asynchronous.
  virtual absl::Status Multiply(const MatmulShape& shape, const MatmulOperands& operands,
                                StreamHandle stream) = 0;
};

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_PRODUCTS_BLAS_H_
