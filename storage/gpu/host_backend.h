// A GPU table on the host's memory and threads (spec.storage.gpuBackend: host): the same functions
// on buckets as a device runs, so that everything above can be tested where there is no device.
#ifndef STRATA_STORAGE_GPU_HOST_BACKEND_H_
#define STRATA_STORAGE_GPU_HOST_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "storage/gpu/backend.h"
#include "storage/gpu/shape.h"

namespace strata::storage::gpu {

struct HostGpuOptions {
  size_t threads = 1;
  // What there is of memory, as a device has it; 0: the host's.
  uint64_t memory_bytes = 0;
};

// Rows are where Open and Read say: nothing is copied. Its threads wait between calls
// (ops/parallel.h). Beside shape.bytes() a call needs 16 bytes for each arrival, 9 for each
// position.
absl::StatusOr<std::unique_ptr<GpuBackend>> MakeHostGpuBackend(const GpuShape& shape,
                                                               const HostGpuOptions& options);

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_HOST_BACKEND_H_
