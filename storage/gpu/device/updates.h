// GpuBackend::Gather and Apply, and what moves rows for them, on a device, by the kernels of
// ops/cuda.
// Tested by tests/storage/gpu/device/backend_test.cc
#ifndef STRATA_STORAGE_GPU_DEVICE_UPDATES_H_
#define STRATA_STORAGE_GPU_DEVICE_UPDATES_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "ops/codec.h"
#include "storage/gpu/device/call.h"
#include "storage/gpu/device/memory.h"
#include "storage/gpu/device/table.h"
#include "storage/row/update.h"

namespace strata::storage::gpu {

// Each is one call, and waits once. slots: (n), kNoGpuSlot: passed over; nothing is open.

// Rows are gathered, and encoded, into `out` where that is pinned memory of the process, else into
// memory.read_rows, which is, and copied from there: only what is asked for crosses the bus.
absl::Status GatherOnDevice(const GpuDeviceTable& d, const GpuDeviceMemory& memory,
                            GpuDeviceCall& call, std::span<const uint32_t> slots,
                            ops::RowCodec codec, uint32_t dim, uint8_t* out);

// The same as float32, into memory of the device.
absl::Status GatherToDevice(const GpuDeviceTable& d, GpuDeviceCall& call,
                            std::span<const uint32_t> slots, uint32_t dim, float* out);

// DeviceRows::Upload through memory.open_rows, and Download through memory.read_rows.
absl::Status UploadRows(const GpuDeviceTable& d, const GpuDeviceMemory& memory, GpuDeviceCall& call,
                        const float* rows, std::span<const uint32_t> numbers, uint32_t dim,
                        float* there);
absl::Status DownloadRows(const GpuDeviceTable& d, const GpuDeviceMemory& memory,
                          GpuDeviceCall& call, const float* there,
                          std::span<const uint32_t> numbers, uint32_t dim, float* rows);

// Sums that lie on the host go through memory.open_rows to memory.call_rows; each run is one
// ops::gpu::Apply and one FoldOutcomes.
absl::Status ApplyOnDevice(const GpuDeviceTable& d, const GpuDeviceMemory& memory,
                           GpuDeviceCall& call, std::span<const uint32_t> slots,
                           const RowUpdate& update, uint8_t* outcomes);

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_DEVICE_UPDATES_H_
