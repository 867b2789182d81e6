// GpuBackend::InitializeRows and InitializeThere on a device, by the kernels of ops/cuda.
// Tested by tests/storage/gpu/device/backend_test.cc
#ifndef STRATA_STORAGE_GPU_DEVICE_BIRTHS_H_
#define STRATA_STORAGE_GPU_DEVICE_BIRTHS_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "storage/gpu/device/call.h"
#include "storage/gpu/device/table.h"
#include "storage/row/births.h"

namespace strata::storage::gpu {

// Each is one call, of one kernel a segment, and waits once. slots: as births.keys, all of them
// slots of the table.
absl::Status InitializeOnDevice(const GpuDeviceTable& d, GpuDeviceCall& call,
                                std::span<const uint32_t> slots, const RowBirths& births);

// numbers: as births.keys. there: (rows, layout.dim), in the device's memory.
absl::Status InitializeWeightsThere(const GpuDeviceTable& d, GpuDeviceCall& call,
                                    const RowBirths& births, std::span<const uint32_t> numbers,
                                    float* there);

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_DEVICE_BIRTHS_H_
