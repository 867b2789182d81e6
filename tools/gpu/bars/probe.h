// Bare probes: kernels that move the same rows at the same random places as those that are
// measured, and do next to nothing with them.
// Tested by tests/tools/gpu/bars/device_work_test.cc
#ifndef STRATA_TOOLS_GPU_BARS_PROBE_H_
#define STRATA_TOOLS_GPU_BARS_PROBE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"

namespace strata::gpu_check {

// All pointers in device memory, at multiples of 16 bytes.
struct ReadProbe {
  const float* table = nullptr;      // rows of 4 * quads floats, one right after the other
  uint32_t quads = 0;                // of a row
  const uint32_t* row_of = nullptr;  // (bags * bag_size)
  uint32_t bags = 0;
  uint32_t bag_size = 1;
  uint32_t stored = 0;   // bags that are written, the first ones; the others are read alone
  float* out = nullptr;  // (stored, 4 * quads): sums of the bags' rows
};

// Asynchronous.
absl::Status ProbeReads(ops::gpu::CudaApi& api, const ReadProbe& probe,
                        ops::gpu::StreamHandle stream);

struct UpdateProbe {
  float* table = nullptr;            // rows of 4 * quads floats
  uint32_t quads = 0;                // weights and state
  const uint32_t* row_of = nullptr;  // (rows), distinct
  uint32_t rows = 0;
  const float* sums = nullptr;  // (rows, 4 * sum_quads), sum_quads <= quads
  uint32_t sum_quads = 0;
};

// Row i of the sums is added to row row_of[i], and the whole row is written back. Asynchronous.
absl::Status ProbeUpdates(ops::gpu::CudaApi& api, const UpdateProbe& probe,
                          ops::gpu::StreamHandle stream);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_BARS_PROBE_H_
