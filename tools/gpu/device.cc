#include "tools/gpu/device.h"

#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/cuda/api/device_api.h"
#include "ops/cuda/api/host_api.h"
#include "ops/cuda/api/versions.h"

namespace strata::gpu_check {
namespace {

using ops::gpu::Arena;
using ops::gpu::Blas;
using ops::gpu::CudaApi;

// The first line of what the kernel's module tells; "" where it tells nothing.
std::string DriverText() {
  std::ifstream in("/proc/driver/nvidia/version");
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaApi>> OpenCheckedDevice(bool host) {
  if (!host) return ops::gpu::OpenDevice("");
  ops::gpu::HostApi::Options options;
  options.device_bytes = size_t{8} << 30;
  return std::make_unique<ops::gpu::HostApi>(options);
}

absl::StatusOr<std::unique_ptr<Blas>> OpenCheckedBlas(Arena* arena, const std::string& library) {
#ifdef STRATA_CUDA
  Blas::Options options;
  options.library = library;
  return Blas::Open(arena, options);
#else
  return absl::NotFoundError("this program was built without CUDA, so without cuBLASLt");
#endif
}

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> DeviceFacts(CudaApi* api) {
  size_t free_bytes = 0, total_bytes = 0;
  const absl::Status status = api->MemoryInfo(&free_bytes, &total_bytes);
  if (!status.ok()) return status;
  const ops::gpu::DeviceProperties& device = api->properties();
  const ops::gpu::CudaVersions versions = ops::gpu::Versions();
  const std::string module = DriverText();
  return std::vector<std::pair<std::string, std::string>>{
      {"device",
       absl::StrCat(device.name, ", compute capability ", device.major, ".", device.minor, ", ",
                    device.multiprocessors, " multiprocessors, L2 ", device.l2_bytes, " B")},
      {"UUID", device.uuid},
      {"memory", absl::StrCat(free_bytes, " of ", total_bytes, " B free")},
      {"driver", absl::StrCat("for CUDA ", versions.driver, module.empty() ? "" : "; ", module)},
      {"CUDA runtime", versions.runtime},
  };
}

}  // namespace strata::gpu_check
