// A product of the device against the host's, in double, from the factors that the device has.
// Tested by tests/tools/gpu/bars/bars_test.cc
#ifndef STRATA_TOOLS_GPU_BARS_PRODUCT_CHECK_H_
#define STRATA_TOOLS_GPU_BARS_PRODUCT_CHECK_H_

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/products/blas.h"
#include "tools/gpu/bars/mlp_products.h"

namespace strata::gpu_check {

// How far an element may be off, in parts of the sum of its terms' magnitudes: fp32 sums of up to
// 65,536 terms in any order 1e-5, and so bf16's (its factors are exact); TF32's factors are cut to
// 11 bits each: 2e-3. A result in bf16 may be off by 2^-8 of itself beside that.
double ToleranceOf(ops::gpu::MatmulPrecision precision);

// Compares C, and the bias gradient where the epilogue makes one, after the product was made.
// Waits. kInternal names the product and its worst element.
absl::Status CheckProduct(ops::gpu::CudaApi* api, const MlpProduct& product,
                          ops::gpu::StreamHandle stream);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_BARS_PRODUCT_CHECK_H_
