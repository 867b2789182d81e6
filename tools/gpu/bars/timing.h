// How long work takes on a stream, by its events.
// Tested by tests/tools/gpu/bars/device_work_test.cc
#ifndef STRATA_TOOLS_GPU_BARS_TIMING_H_
#define STRATA_TOOLS_GPU_BARS_TIMING_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/cuda/api/api.h"

namespace strata::gpu_check {

// Gives the stream one call's work. Asynchronous.
using Work = std::function<absl::Status()>;

// The median of one call of each work, in ms. Works take turns, `repetitions` times, after a first
// turn that does not count; in a sample a work is called often enough to take about sample_ms, so
// that the gaps between launches do not matter. Waits.
absl::StatusOr<std::vector<double>> MedianMs(ops::gpu::CudaApi* api, ops::gpu::StreamHandle stream,
                                             const std::vector<Work>& works, uint32_t repetitions,
                                             double sample_ms);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_BARS_TIMING_H_
