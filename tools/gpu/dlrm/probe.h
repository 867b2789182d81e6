// What a dlrm step cannot do without: the bare products of both perceptrons, and the rows of its
// distinct keys gathered and updated where they lie, each once, with nothing else computed.
// Tested by tests/tools/gpu/dlrm/bar_test.cc
#ifndef STRATA_TOOLS_GPU_DLRM_PROBE_H_
#define STRATA_TOOLS_GPU_DLRM_PROBE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/cuda/products/blas.h"
#include "tools/gpu/bars/bar.h"

namespace strata::gpu_check {

struct DlrmProbeOptions {
  uint32_t batch = 0;
  std::vector<uint32_t> bottom, top;  // widths: inputs, each layer's outputs
  ops::gpu::MatmulPrecision precision = ops::gpu::MatmulPrecision::kFp32;
  uint64_t table_rows = 1;  // of which the largest power of two is used
  uint32_t row_floats = 0;  // weights and state; rounded up to multiples of 4
  uint32_t dim = 0;         // weights; a multiple of 4, <= row_floats
  uint64_t rows = 0;        // of a step
};

struct DlrmProbe {
  double products_ms = 0;
  double ms = 0;  // products and rows
  double copy_bytes_per_s = 0;
};

// Takes its memory and gives it back. Waits. kNotFound: there is no library of products.
absl::StatusOr<DlrmProbe> ProbeDlrm(const BarContext& context, const DlrmProbeOptions& options);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_DLRM_PROBE_H_
