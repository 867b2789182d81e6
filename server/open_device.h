// The GPU that a server is started with.
// Tested by tests/faults/device_lost_test.cc
// Tested by tests/bad_input/bad_device_test.cc
#ifndef STRATA_SERVER_OPEN_DEVICE_H_
#define STRATA_SERVER_OPEN_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ops/cuda/api/api.h"

namespace strata::server {

// `wanted`: a UUID or its beginning; first; or host: what runs on a GPU, on threads of this
// machine, for trying and testing it without one. There, failpoint device.lost plays the loss of
// the device. Errors: those of ops::gpu::OpenDevice.
absl::StatusOr<std::unique_ptr<ops::gpu::CudaApi>> OpenServerDevice(const std::string& wanted);

}  // namespace strata::server

#endif  // STRATA_SERVER_OPEN_DEVICE_H_
