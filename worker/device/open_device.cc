#include "worker/device/open_device.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/cuda/api/device_api.h"
#include "ops/cuda/api/host_api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/products/blas.h"
#include "ops/cuda/products/host_blas.h"
#include "proto/runtime/base/failpoints.h"

namespace strata::device {
namespace {

using ops::gpu::Arena;
using ops::gpu::Blas;

absl::StatusOr<std::unique_ptr<Blas>> OpenBlas(Arena* arena, const std::string& library,
                                               size_t workspace_bytes) {
#ifdef STRATA_CUDA
  Blas::Options options;
  options.library = library;
  options.workspace_bytes = workspace_bytes;
  return Blas::Open(arena, options);
#else
  return absl::FailedPreconditionError("this program was built without CUDA, so without cuBLASLt");
#endif
}

// The library's version; it is opened once more for each job.
absl::StatusOr<std::string> BlasVersion(ops::gpu::CudaApi* api, const std::string& library) {
  constexpr size_t kBytes = 256;
  auto arena = Arena::Create(api, ops::gpu::MemoryKind::kDevice, kBytes, "cuBLASLt");
  if (!arena.ok()) return arena.status();
  auto blas = OpenBlas(arena->get(), library, kBytes);
  if (!blas.ok()) return blas.status();
  return (*blas)->version();
}

std::unique_ptr<OpenedDevice> PlayedByThreads(uint32_t threads) {
  ops::gpu::HostApi::Options options;
  options.threads = std::max(1u, threads);
  options.lose = [] { return Failpoint("device.lost"); };
  auto opened = std::make_unique<OpenedDevice>();
  opened->api = std::make_unique<ops::gpu::HostApi>(options);
  WorkerDevice& d = opened->device;
  d.api = opened->api.get();
  d.open_blas = [api = d.api](Arena*) { return ops::gpu::MakeHostBlas(api); };
  d.uuid = opened->api->properties().uuid;
  d.numerics_id = "strata-host-1";
  return opened;
}

}  // namespace

absl::StatusOr<std::unique_ptr<OpenedDevice>> OpenWorkerDevice(const std::string& wanted,
                                                               const std::string& blas_library,
                                                               uint32_t threads) {
  if (wanted == "none") return nullptr;
  if (wanted == "host") return PlayedByThreads(threads);
  if (wanted == "auto" && ops::gpu::Devices().size() != 1) return nullptr;
  auto api = ops::gpu::OpenDevice(wanted == "auto" || wanted == "first" ? "" : wanted);
  if (!api.ok()) return api.status();
  auto opened = std::make_unique<OpenedDevice>();
  opened->api = *std::move(api);
  auto version = BlasVersion(opened->api.get(), blas_library);
  if (!version.ok()) return version.status();
  const ops::gpu::DeviceProperties& properties = opened->api->properties();
  WorkerDevice& d = opened->device;
  d.api = opened->api.get();
  d.blas_bytes = Blas::Options::kBytes;
  d.open_blas = [blas_library](Arena* arena) {
    return OpenBlas(arena, blas_library, Blas::Options().workspace_bytes);
  };
  d.uuid = properties.uuid;
  d.numerics_id = absl::StrCat("strata-cuda-1 ", properties.name, ", ", properties.multiprocessors,
                               " multiprocessors, cuBLASLt ", *version);
  return opened;
}

}  // namespace strata::device
