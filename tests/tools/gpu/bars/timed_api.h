// Host threads in place of the device of a bar, whose times mean nothing.
#ifndef STRATA_TESTS_TOOLS_GPU_BARS_TIMED_API_H_
#define STRATA_TESTS_TOOLS_GPU_BARS_TIMED_API_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/host_api.h"

namespace strata::gpu_check {

// Its events are a millisecond apart, and kernels named `idle` do nothing.
class TimedApi : public ops::gpu::HostApi {
 protected:
  TimedApi(size_t device_bytes, std::string idle)
      : HostApi(With(device_bytes)), idle_(std::move(idle)) {}

  absl::Status DoElapsedMs(ops::gpu::EventHandle begin, ops::gpu::EventHandle end,
                           float* ms) override {
    const absl::Status status = HostApi::DoElapsedMs(begin, end, ms);
    *ms = 1.0f;
    return status;
  }
  absl::Status DoLaunch(const ops::gpu::Kernel& kernel, const ops::gpu::LaunchShape& shape,
                        const void* functor, ops::gpu::StreamHandle stream) override {
    if (kernel.name == idle_) return absl::OkStatus();
    return HostApi::DoLaunch(kernel, shape, functor, stream);
  }

 private:
  static Options With(size_t device_bytes) {
    Options options;
    options.device_bytes = device_bytes;
    return options;
  }
  const std::string idle_;
};

}  // namespace strata::gpu_check

#endif  // STRATA_TESTS_TOOLS_GPU_BARS_TIMED_API_H_
