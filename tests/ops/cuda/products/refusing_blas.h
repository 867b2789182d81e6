// A library that has not everything: products of host threads, without epilogues, and without a
// precision.
#ifndef STRATA_TESTS_OPS_CUDA_PRODUCTS_REFUSING_BLAS_H_
#define STRATA_TESTS_OPS_CUDA_PRODUCTS_REFUSING_BLAS_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/products/blas.h"
#include "ops/cuda/products/host_blas.h"

namespace strata::ops::gpu::testing {

class RefusingBlas : public Blas {
 public:
  // *refused counts what is; it and `api` outlive this.
  RefusingBlas(CudaApi* api, std::optional<MatmulPrecision> without, int* refused)
      : blas_(MakeHostBlas(api)), without_(without), refused_(refused) {}
  const std::string& path() const override { return blas_->path(); }
  const std::string& version() const override { return blas_->version(); }
  absl::Status Multiply(const MatmulShape& shape, const MatmulOperands& operands,
                        StreamHandle stream) override {
    if (shape.epilogue == MatmulEpilogue::kNone && shape.precision != without_) {
      return blas_->Multiply(shape, operands, stream);
    }
    ++*refused_;
    return absl::InvalidArgumentError("no such product");
  }

 private:
  const std::unique_ptr<Blas> blas_;
  const std::optional<MatmulPrecision> without_;
  int* const refused_;
};

}  // namespace strata::ops::gpu::testing

#endif  // STRATA_TESTS_OPS_CUDA_PRODUCTS_REFUSING_BLAS_H_
