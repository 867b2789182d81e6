// A perceptron's products with their epilogues against the same products bare.
// Tested by tests/tools/gpu/bars/bars_test.cc
#ifndef STRATA_TOOLS_GPU_BARS_MLP_BAR_H_
#define STRATA_TOOLS_GPU_BARS_MLP_BAR_H_

#include "absl/status/status.h"
#include "tools/gpu/bars/bar.h"

namespace strata::gpu_check {

// Lines for fp32, TF32 and bf16: forward and backward at least 95, 80 and 75 % as fast as the same
// products without epilogues (the probe). Before each, every product with a smaller batch is
// compared with the host's (product_check.h). Counted are the products' floating-point operations.
// kNotFound: there is no cuBLASLt. Waits.
absl::Status MlpBar(const BarContext& context);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_BARS_MLP_BAR_H_
