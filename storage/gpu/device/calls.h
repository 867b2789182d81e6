// Kernels of a GPU table: finding and inserting rows, moving their bytes, and changing what stands
// beside them. All are asynchronous, on the table's stream; pointers are into the device's memory
// unless they are said to be of pinned memory, which kernels reach over the bus. n = 0: nothing is
// done.
// Tested by tests/storage/gpu/device/look_up_test.cc
// Tested by tests/storage/gpu/device/backend_test.cc
#ifndef STRATA_STORAGE_GPU_DEVICE_CALLS_H_
#define STRATA_STORAGE_GPU_DEVICE_CALLS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "storage/gpu/bucket.h"
#include "storage/gpu/calls.h"
#include "storage/gpu/device/table.h"
#include "storage/gpu/score.h"

namespace strata::storage::gpu {

// FindOne of each of n positions, by kFindLanes of the bucket's size.
absl::Status FindRows(const GpuDeviceTable& d, const GpuFind& call, uint32_t n);

// For who has positions, and wants rows, on the device: slots, or kNoGpuSlot, and the rows that
// were found, moved in the same pass; no hold, no score. positions: (n). slots: (n), or null. rows:
// (n, t.stride), or null; those not found are left as they are.
absl::Status LookUpRows(const GpuDeviceTable& d, const uint64_t* positions, uint32_t n,
                        uint32_t* slots, uint8_t* rows);

// Scratch of InsertRows.
struct GpuInsertLists {
  uint32_t* buckets = nullptr;         // (n)
  uint32_t* ordinals = nullptr;        // (n): 0, 1, 2...
  uint32_t* sorted_buckets = nullptr;  // (n)
  uint32_t* order = nullptr;           // (n)
  uint32_t* begins = nullptr;          // (n + 1)
  uint32_t* runs = nullptr;            // 1
};

// arrivals, placed: (n). Sorted by bucket, a bucket's arrivals in their order; then InsertRun of
// each bucket by a lane for each eight of its slots.
absl::Status InsertRows(const GpuDeviceTable& d, const GpuScoring& scoring,
                        const GpuArrival* arrivals, uint32_t n, const GpuInsertLists& lists,
                        GpuPlaced* placed);

// Rows at `base`, t.stride bytes each: number i, or where `numbers` is not null, numbers[i]. At a
// multiple of 16, of the device's memory or pinned.
struct GpuRowsAt {
  uint8_t* base = nullptr;
  const uint32_t* numbers = nullptr;  // (n)
};
// n rows, whole strides. REQUIRES: none of `to` is one of `from`, and those of `to` are distinct.
absl::Status CopyRows(const GpuDeviceTable& d, const GpuRowsAt& to, const GpuRowsAt& from,
                      uint32_t n);

// Flags of the rows at `slots` (n, distinct): (flags | set) & ~clear.
absl::Status ChangeFlags(const GpuDeviceTable& d, const uint32_t* slots, uint32_t n, uint8_t set,
                         uint8_t clear);

// flags[i] of slots[i], and pinned[i]: 1 if it has a pin; both 0 of kNoGpuSlot.
absl::Status ReadFlags(const GpuDeviceTable& d, const uint32_t* slots, uint32_t n, uint8_t* flags,
                       uint8_t* pinned);

// They hold no row any more. slots: (n), distinct.
absl::Status ClearSlots(const GpuDeviceTable& d, const uint32_t* slots, uint32_t n);

// Of every slot and ghost.
absl::Status AgeScores(const GpuDeviceTable& d, const GpuAging& aging);

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_DEVICE_CALLS_H_
