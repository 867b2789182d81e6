// CudaApi on CUDA's runtime.
// Tested by tests/ops/cuda/api/memory_test.cc
#ifndef STRATA_OPS_CUDA_API_DEVICE_API_H_
#define STRATA_OPS_CUDA_API_DEVICE_API_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/cuda/api/api.h"

namespace strata::ops::gpu {

// The devices that this process sees, a MIG slice being one. Empty where there is no driver.
std::vector<DeviceProperties> Devices();

// The device of a UUID ("GPU-..", "MIG-..", or the beginning of one); "" is the first. A process
// uses one device: a later call with another UUID is kFailedPrecondition. ChooseDevice's errors:
// kNotFound names the devices that there are, kInvalidArgument those that `uuid` may mean. Any
// thread; threads that use the result need nothing further.
absl::StatusOr<std::unique_ptr<CudaApi>> OpenDevice(absl::string_view uuid);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_API_DEVICE_API_H_
