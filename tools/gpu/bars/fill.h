// Contents for bars, made on the device: functions of a seed and an element's number alone.
// Tested by tests/tools/gpu/bars/device_work_test.cc
#ifndef STRATA_TOOLS_GPU_BARS_FILL_H_
#define STRATA_TOOLS_GPU_BARS_FILL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"

namespace strata::gpu_check {

// out: (n) uniform in [low, high), in device memory. Asynchronous.
absl::Status FillFloats(ops::gpu::CudaApi& api, uint64_t n, float low, float high, uint64_t seed,
                        float* out, ops::gpu::StreamHandle stream);

// The same as bf16, cut off.
absl::Status FillBf16(ops::gpu::CudaApi& api, uint64_t n, float low, float high, uint64_t seed,
                      uint16_t* out, ops::gpu::StreamHandle stream);

// out: (n) distinct numbers below 2^bits in random order, in device memory. REQUIRES: bits <= 32, n
// <= 2^bits. Asynchronous.
absl::Status FillRowNumbers(ops::gpu::CudaApi& api, uint32_t n, uint32_t bits, uint64_t seed,
                            uint32_t* out, ops::gpu::StreamHandle stream);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_BARS_FILL_H_
