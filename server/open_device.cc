#include "server/open_device.h"

#include "absl/status/status.h"
#include "ops/cuda/device_api.h"
#include "ops/cuda/host_api.h"
#include "proto/runtime/failpoints.h"

namespace strata::server {
namespace {

class HostThreads : public ops::gpu::HostApi {
 public:
  HostThreads() : HostApi(Options()) {}

 protected:
  absl::Status Enter(const char*) override {
    const absl::Status status = Failpoint("device.lost");
    return status.ok() ? status : ops::gpu::DeviceLost(status);
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<ops::gpu::CudaApi>> OpenServerDevice(const std::string& wanted) {
  if (wanted == "host") return std::make_unique<HostThreads>();
  return ops::gpu::OpenDevice(wanted == "first" ? "" : wanted);
}

}  // namespace strata::server
