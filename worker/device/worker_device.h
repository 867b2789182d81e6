// The GPU that a worker was started with, as whatever computes on it takes it.
// Tested by tests/e2e/co_located_test.cc
// Tested by tests/tools/cli/data/estimate_device_test.cc
#ifndef STRATA_WORKER_DEVICE_WORKER_DEVICE_H_
#define STRATA_WORKER_DEVICE_WORKER_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/products/blas.h"

namespace strata::device {

// How rows go between a worker and servers of its own process that have its device.
enum class RowPath : uint8_t {
  kDevice,  // by the device's memory where they can
  kHost,    // in messages, as between processes
};

// Constant once the worker runs, and outlives it.
struct WorkerDevice {
  ops::gpu::CudaApi* api = nullptr;
  // Products on it: see DeviceStepOptions.
  std::function<absl::StatusOr<std::unique_ptr<ops::gpu::Blas>>(ops::gpu::Arena* arena)> open_blas;
  size_t blas_bytes = 0;
  // Whoever opened it ends the process when it is lost (CudaApi::WhenLost): nobody need report
  // that.
  bool lost_ends_process = false;
  std::string uuid;
  // What decides the bits of its results, but for the job (ops/EXACT.md rule 11): model,
  // multiprocessors, and the library of the products with its version.
  std::string numerics_id;
};

}  // namespace strata::device

#endif  // STRATA_WORKER_DEVICE_WORKER_DEVICE_H_
