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

struct Sampling {
  uint32_t repetitions = 11;  // the median counts
  double sample_ms = 1.0;     // calls are repeated until a sample takes about this long
  double warm_ms = 300;       // of work before anything counts: clocks rise with it
};

// The median of one call of each work, in ms. Works take turns: first until kernels are loaded and
// the device has worked for warm_ms, then `repetitions` times; in a sample a work is called often
// enough to take about sample_ms, so that the gaps between launches do not matter. Waits.
absl::StatusOr<std::vector<double>> MedianMs(ops::gpu::CudaApi* api, ops::gpu::StreamHandle stream,
                                             const std::vector<Work>& works,
                                             const Sampling& sampling);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_BARS_TIMING_H_
