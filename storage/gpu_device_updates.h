// GpuBackend::Gather and Apply on a device, by the kernels of ops/cuda.
#ifndef STRATA_STORAGE_GPU_DEVICE_UPDATES_H_
#define STRATA_STORAGE_GPU_DEVICE_UPDATES_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "ops/codec.h"
#include "storage/gpu_device_call.h"
#include "storage/gpu_device_memory.h"
#include "storage/gpu_device_table.h"
#include "storage/row_update.h"

namespace strata::storage {

// Both are one call, and wait once. slots: (n), kNoGpuSlot: passed over; nothing is open.

// Rows are gathered, and encoded, into memory.read_rows, and from there copied to `out`: kernels
// write the pinned memory, so that only what is asked for crosses the bus.
absl::Status GatherOnDevice(const GpuDeviceTable& d, const GpuDeviceMemory& memory,
                            GpuDeviceCall& call, std::span<const uint32_t> slots,
                            ops::RowCodec codec, uint32_t dim, uint8_t* out);

// Sums go through memory.open_rows to memory.call_rows; each run is one ops::gpu::Apply and one
// FoldOutcomes.
absl::Status ApplyOnDevice(const GpuDeviceTable& d, const GpuDeviceMemory& memory,
                           GpuDeviceCall& call, std::span<const uint32_t> slots,
                           const RowUpdate& update, uint8_t* outcomes);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_GPU_DEVICE_UPDATES_H_
