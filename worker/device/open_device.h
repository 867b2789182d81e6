// Finds and opens the GPU of a worker process.
// Tested by tests/faults/device_lost_test.cc
// Tested by tests/bad_input/bad_device_test.cc
#ifndef STRATA_WORKER_DEVICE_OPEN_DEVICE_H_
#define STRATA_WORKER_DEVICE_OPEN_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ops/cuda/api/api.h"
#include "worker/device/worker_device.h"

namespace strata::device {

struct OpenedDevice {
  std::unique_ptr<ops::gpu::CudaApi> api;
  WorkerDevice device;
};

// `wanted`: a UUID or its beginning; "first"; "none"; "host": `threads` threads play it, for trying
// and testing it (failpoint device.lost plays its loss); or "auto": the GPU where this program was
// built with CUDA and sees exactly one, else none. `blas_library`: a file, instead of the search of
// ops/cuda/products/blas_search.h. Null: the worker has no GPU. Errors, never of "none": there is
// no such GPU, the program was built without CUDA, or cuBLASLt is missing; of "auto" the last
// alone.
absl::StatusOr<std::unique_ptr<OpenedDevice>> OpenWorkerDevice(const std::string& wanted,
                                                               const std::string& blas_library,
                                                               uint32_t threads);

}  // namespace strata::device

#endif  // STRATA_WORKER_DEVICE_OPEN_DEVICE_H_
