// GpuBackend::Dirty and NextToLeave on a device: which rows are to be written below.
// Tested by tests/storage/gpu/device/backend_test.cc
#ifndef STRATA_STORAGE_GPU_DEVICE_DIRTY_H_
#define STRATA_STORAGE_GPU_DEVICE_DIRTY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "storage/gpu/calls.h"
#include "storage/gpu/device/call.h"
#include "storage/gpu/device/table.h"

namespace strata::storage::gpu {

// One call, and one wait, for each `max_batch` rows.
absl::StatusOr<std::vector<GpuRow>> DirtyOnDevice(const GpuDeviceTable& d, GpuDeviceCall& call,
                                                  uint32_t max_batch, Position first, Position last,
                                                  size_t most);

// One call, and one wait.
absl::StatusOr<std::vector<GpuRow>> NextToLeaveOnDevice(const GpuDeviceTable& d,
                                                        GpuDeviceCall& call, uint32_t& bucket,
                                                        size_t most);

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_DEVICE_DIRTY_H_
