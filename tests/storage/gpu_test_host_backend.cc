#include "storage/gpu_host_backend.h"
#include "tests/storage/gpu_test_backend.h"

namespace strata::storage {

GpuBackendFactory BackendWith(size_t threads, uint64_t memory_bytes) {
  return [=](const GpuShape& shape) {
    return MakeHostGpuBackend(shape, {.threads = threads, .memory_bytes = memory_bytes});
  };
}

size_t BackendOperations(size_t operations) { return operations; }

}  // namespace strata::storage
