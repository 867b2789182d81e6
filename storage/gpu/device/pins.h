// Kernels that count the pins of a GPU table's rows. All are asynchronous, on the table's stream;
// pointers are into the device's memory.
//
// Slots may repeat in a call, and each occurrence counts. They are sorted, so that an occurrence
// knows how many of its slot come before it, and a slot's counter is written once: a sort and some
// kernels of one thread for each occurrence, whatever the slots are.
// Tested by tests/storage/gpu/device/backend_test.cc
#ifndef STRATA_STORAGE_GPU_DEVICE_PINS_H_
#define STRATA_STORAGE_GPU_DEVICE_PINS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "storage/gpu/device/table.h"

namespace strata::storage::gpu {

// Scratch, (n) each.
struct GpuPinLists {
  uint32_t* ordinals = nullptr;  // 0, 1, 2...
  uint32_t* sorted = nullptr;    // slots
  uint32_t* order = nullptr;     // where they stand in the call
  // PinRows alone.
  uint32_t* before = nullptr;  // rows pinned for the first time before this one
  uint8_t* codes = nullptr;
  uint8_t* stops = nullptr;
};

struct GpuPinCounts {
  uint32_t through = 0;  // slots gone through
  uint32_t rows = 0;     // of them pinned for the first time
};

// slots: (n), any numbers. One after the other gets a pin, until one of these: it names no slot
// that holds a row (kNoGpuSlot is passed over), its row has 255 pins, or it would be row number
// most_rows + 1 that is pinned for the first time. n > 0.
absl::Status PinRows(const GpuDeviceTable& d, const uint32_t* slots, uint32_t n, uint32_t most_rows,
                     const GpuPinLists& lists, GpuPinCounts* counts);

// Takes a pin from the rows of `positions` that are in `slots`, (n) each, and have one. ended[i] is
// 1 where a row has lost its last, at one of its occurrences. n > 0.
absl::Status UnpinRows(const GpuDeviceTable& d, const uint64_t* positions, const uint32_t* slots,
                       uint32_t n, const GpuPinLists& lists, uint8_t* ended);

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_DEVICE_PINS_H_
