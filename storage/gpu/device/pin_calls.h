// GpuBackend::Pin and Unpin on a device, by the kernels of pins.h.
// Tested by tests/storage/gpu/device/backend_test.cc
#ifndef STRATA_STORAGE_GPU_DEVICE_PIN_CALLS_H_
#define STRATA_STORAGE_GPU_DEVICE_PIN_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "storage/gpu/backend.h"
#include "storage/gpu/device/call.h"
#include "storage/gpu/device/table.h"

namespace strata::storage::gpu {

// Each is one call, and waits once.
absl::StatusOr<GpuPinned> PinOnDevice(const GpuDeviceTable& d, GpuDeviceCall& call,
                                      std::span<const uint32_t> slots, size_t most_rows);
absl::StatusOr<size_t> UnpinOnDevice(const GpuDeviceTable& d, GpuDeviceCall& call,
                                     std::span<const Position> positions,
                                     std::span<const uint32_t> slots);

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_DEVICE_PIN_CALLS_H_
