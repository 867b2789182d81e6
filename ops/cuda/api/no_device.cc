// device_api.h where nvcc was not asked to compile anything.
#include "ops/cuda/api/device_api.h"

namespace strata::ops::gpu {

std::vector<DeviceProperties> Devices() { return {}; }

absl::StatusOr<std::unique_ptr<CudaApi>> OpenDevice(absl::string_view) {
  return absl::FailedPreconditionError(
      "this program was built without CUDA; build it with --config=cuda, where nvcc is installed");
}

}  // namespace strata::ops::gpu
