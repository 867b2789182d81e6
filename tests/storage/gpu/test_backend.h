// The backend of a test's GPU tables, so that every implementation passes the same cases: of the
// one source of gpu_test_*_backend.cc that the test has.
#ifndef STRATA_TESTS_STORAGE_GPU_TEST_BACKEND_H_
#define STRATA_TESTS_STORAGE_GPU_TEST_BACKEND_H_

#include <cstddef>
#include <cstdint>

#include "storage/gpu/backend.h"

namespace strata::storage::gpu {

// memory_bytes: what there is of the device's memory; 0: enough.
GpuBackendFactory BackendWith(size_t threads, uint64_t memory_bytes = 0);

// How many operations a case does of those that it does on the fastest backend.
size_t BackendOperations(size_t operations);

}  // namespace strata::storage::gpu

#endif  // STRATA_TESTS_STORAGE_GPU_TEST_BACKEND_H_
