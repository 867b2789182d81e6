#include <memory>
#include <vector>

#include "ops/cuda/api/api.h"
#include "ops/cuda/api/host_api.h"
#include "storage/gpu/device/backend.h"
#include "tests/ops/cuda/api/test_apis.h"
#include "tests/skip.h"
#include "tests/storage/gpu/test_backend.h"

namespace strata::storage::gpu {
namespace {

using ops::gpu::CudaApi;
using ops::gpu::HostApi;

std::unique_ptr<HostApi> Threads(size_t threads, uint64_t memory_bytes) {
  HostApi::Options options;
  options.threads = threads;
  if (memory_bytes != 0) options.device_bytes = memory_bytes;
  return std::make_unique<HostApi>(options);
}

// The device, or null: of the first case that asks, its absence is reported.
CudaApi* Device() {
  static const std::vector<ops::gpu::testing::TestApi> apis = ops::gpu::testing::Apis();
  return apis.back().name == "device" ? apis.back().api.get() : nullptr;
}

// One thread is the host's; a team is the device or, where there is none, four: more would wait for
// each other in many small kernels.
CudaApi* ApiWith(size_t threads, uint64_t memory_bytes) {
  static std::vector<std::unique_ptr<HostApi>> scarce;
  static const std::unique_ptr<HostApi> one = Threads(1, 0), team = Threads(4, 0);
  if (memory_bytes != 0) {
    scarce.push_back(Threads(1, memory_bytes));
    return scarce.back().get();
  }
  if (threads == 1) return one.get();
  CudaApi* const device = Device();
  return device != nullptr ? device : team.get();
}

}  // namespace

// Batches are small enough that what a table does may take several calls.
GpuBackendFactory BackendWith(size_t threads, uint64_t memory_bytes) {
  return [api = ApiWith(threads, memory_bytes)](const GpuShape& shape) {
    return MakeDeviceGpuBackend(api, shape, {.max_batch = 2500});
  };
}

// All of the few that are done under a sanitizer.
size_t BackendOperations(size_t operations) {
  return Operations(100) == 100 ? operations / 4 : operations;
}

}  // namespace strata::storage::gpu
