// The kernels behind those of ops/cuda: what became of the rows of an update, and what rows that
// are born have beside weights and the optimizer's state.
// Tested by tests/storage/gpu/device/backend_test.cc
#ifndef STRATA_STORAGE_GPU_DEVICE_TOUCH_H_
#define STRATA_STORAGE_GPU_DEVICE_TOUCH_H_

#include <cstdint>

#include "absl/status/status.h"
#include "storage/gpu/device/table.h"

namespace strata::storage::gpu {

// All pointers are into the device's memory. Trivially copyable.
struct GpuFold {
  const uint32_t* slots = nullptr;   // (n), distinct; kNoGpuSlot: outcome 0
  const uint8_t* of_run = nullptr;   // (n): of ops::gpu::Apply
  uint8_t* outcomes = nullptr;       // (n): RowOutcome's bits so far
  bool first = false, last = false;  // of the update's runs
  uint32_t meta_offset = 0;          // bytes, in a row
  uint32_t step = 0;
};

// Adds a run's outcomes; behind the last run, TouchMeta of the rows that took their gradient.
// Asynchronous, on the table's stream.
absl::Status FoldOutcomes(const GpuDeviceTable& d, const GpuFold& fold, uint32_t n);

// Zeroes words first .. end - 1 (of 4 bytes) of the rows of `slots`, (n) in the device's memory.
// Asynchronous, on the table's stream.
absl::Status ZeroWords(const GpuDeviceTable& d, const uint32_t* slots, uint32_t n, uint32_t first,
                       uint32_t end);

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_DEVICE_TOUCH_H_
