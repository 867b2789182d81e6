// A GPU table in a device's memory, through the seam to CUDA's runtime (ops/cuda/api/api.h).
#ifndef STRATA_STORAGE_GPU_DEVICE_BACKEND_H_
#define STRATA_STORAGE_GPU_DEVICE_BACKEND_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "ops/cuda/api/api.h"
#include "storage/gpu/backend.h"
#include "storage/gpu/shape.h"

namespace strata::storage::gpu {

struct DeviceGpuOptions {
  // A table of few rows needs no larger batches than kFewRows, or its slots, if they are more.
  static constexpr uint32_t kFewRows = 4096;

  // Most positions of a call. Fewer where the table has fewer rows, or where pinned memory of so
  // many rows does not fit.
  uint32_t max_batch = uint32_t{1} << 16;
  // Bound of pinned memory; memory.h has the formula.
  uint64_t pinned_bytes = uint64_t{64} << 20;
};

// All memory is taken here, memory.h says how much, but for pinned memory of rows: its bytes are
// set aside here, and taken by the first calls that copy rows. No other call allocates any. Rows
// are copied: Read and ReadStaged bring them to pinned memory, Open, too, and Close takes them
// back. Gather and Apply compute where the rows lie: encoded weights come back, sums go there.
// Every call waits for the device once, but Dirty, which does so once for each max_batch() rows of
// its answer. What calls cost beside the rows that they move: Find a kernel, Insert and Unpin a
// sort, Pin a sort and two scans (kernels on what the call names); Dirty three or four passes over
// all slots (storage/gpu/select.h) and a sort; NextToLeave a kernel on kLeaveBuckets buckets; Age
// one on all slots.
//
// `api` outlives the table. An error of its calls is what the call at hand returns, and all later
// ones. INVALID_ARGUMENT names the option, RESOURCE_EXHAUSTED requested and free bytes.
absl::StatusOr<std::unique_ptr<GpuBackend>> MakeDeviceGpuBackend(ops::gpu::CudaApi* api,
                                                                 const GpuShape& shape,
                                                                 const DeviceGpuOptions& options);

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_DEVICE_BACKEND_H_
