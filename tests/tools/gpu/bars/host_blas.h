// ops/cuda/products/blas.h on the host, element by element in double, for bars without a device.
#ifndef STRATA_TESTS_TOOLS_GPU_BARS_HOST_BLAS_H_
#define STRATA_TESTS_TOOLS_GPU_BARS_HOST_BLAS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/products/blas.h"

namespace strata::gpu_check::testing {

// Memory is the host's. One thread.
class HostBlas : public ops::gpu::Blas {
 public:
  // Added to element 1 of each result in this precision, unless it is 0: a library that is wrong.
  float error = 0.0f;
  ops::gpu::MatmulPrecision wrong = ops::gpu::MatmulPrecision::kFp32;
  // Products so far, and those without an epilogue.
  uint32_t products = 0, bare = 0;

  const std::string& path() const override { return path_; }
  const std::string& version() const override { return version_; }
  absl::Status Multiply(const ops::gpu::MatmulShape& shape,
                        const ops::gpu::MatmulOperands& operands,
                        ops::gpu::StreamHandle stream) override;

 private:
  const std::string path_ = "host", version_ = "0.0.0";
};

}  // namespace strata::gpu_check::testing

#endif  // STRATA_TESTS_TOOLS_GPU_BARS_HOST_BLAS_H_
