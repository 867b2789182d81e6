#include "server/open_device.h"

#include "absl/status/status.h"
#include "ops/cuda/api/device_api.h"
#include "ops/cuda/api/host_api.h"
#include "proto/runtime/base/failpoints.h"

namespace strata::server {
absl::StatusOr<std::unique_ptr<ops::gpu::CudaApi>> OpenServerDevice(const std::string& wanted) {
  if (wanted == "host") {
    ops::gpu::HostApi::Options options;
    options.lose = [] { return Failpoint("device.lost"); };
    return std::make_unique<ops::gpu::HostApi>(options);
  }
  return ops::gpu::OpenDevice(wanted == "first" ? "" : wanted);
}

}  // namespace strata::server
