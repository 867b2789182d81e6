#include "storage/gpu/host_backend.h"
#include "tests/storage/gpu/test_backend.h"

namespace strata::storage::gpu {

GpuBackendFactory BackendWith(size_t threads, uint64_t memory_bytes) {
  return [=](const GpuShape& shape) {
    return MakeHostGpuBackend(shape, {.threads = threads, .memory_bytes = memory_bytes});
  };
}

size_t BackendOperations(size_t operations) { return operations; }

}  // namespace strata::storage::gpu
