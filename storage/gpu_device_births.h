// GpuBackend::InitializeRows and InitializeThere on a device, by the kernels of ops/cuda.
#ifndef STRATA_STORAGE_GPU_DEVICE_BIRTHS_H_
#define STRATA_STORAGE_GPU_DEVICE_BIRTHS_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "storage/gpu_device_call.h"
#include "storage/gpu_device_table.h"
#include "storage/row_births.h"

namespace strata::storage {

// Each is one call, of one kernel a segment, and waits once. slots: as births.keys, all of them
// slots of the table.
absl::Status InitializeOnDevice(const GpuDeviceTable& d, GpuDeviceCall& call,
                                std::span<const uint32_t> slots, const RowBirths& births);

// numbers: as births.keys. there: (rows, layout.dim), in the device's memory.
absl::Status InitializeWeightsThere(const GpuDeviceTable& d, GpuDeviceCall& call,
                                    const RowBirths& births, std::span<const uint32_t> numbers,
                                    float* there);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_GPU_DEVICE_BIRTHS_H_
