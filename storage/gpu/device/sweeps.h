// Kernels that look through a GPU table's slots: for dirty rows by position, and for those that
// leave next. All are asynchronous, on the table's stream; pointers are into the device's memory.
// Tested by tests/storage/gpu/device/backend_test.cc
#ifndef STRATA_STORAGE_GPU_DEVICE_SWEEPS_H_
#define STRATA_STORAGE_GPU_DEVICE_SWEEPS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "storage/gpu/calls.h"
#include "storage/gpu/device/table.h"
#include "storage/gpu/select.h"

namespace strata::storage::gpu {

// Scratch of DirtyRows; n: rows asked for.
struct GpuDirtyLists {
  GpuSelect* select = nullptr;       // 1
  uint32_t* bins = nullptr;          // (kSelectBins)
  uint64_t* positions = nullptr;     // (n)
  uint32_t* slots = nullptr;         // (n)
  uint64_t* sorted = nullptr;        // (n), positions
  uint32_t* sorted_slots = nullptr;  // (n)
};

// The first `n` dirty rows of [first, last], ascending by position: rows (n), *count of them. n >
// 0. Up to SelectPasses passes over the slots (storage/gpu/select.h) find where they end, one more,
// in three kernels, names them, and n are sorted.
absl::Status DirtyRows(const GpuDeviceTable& d, uint64_t first, uint64_t last, uint32_t n,
                       const GpuDirtyLists& lists, uint32_t* count, GpuRow* rows);

// What LeavingRowsFrom has found.
struct GpuLeaving {
  uint32_t rows = 0;
  uint32_t looked = 0;  // buckets looked at
};

// LeavingRows of buckets `first` .. first + looks - 1 (modulo their number), by a warp each, until
// there are `most`: rows (most), *leaving of them. of_buckets: scratch, (looks, bucket_slots / 16).
// looks, most > 0.
absl::Status LeavingRowsFrom(const GpuDeviceTable& d, uint32_t first, uint32_t looks, uint32_t most,
                             GpuRow* of_buckets, GpuLeaving* leaving, GpuRow* rows);

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_DEVICE_SWEEPS_H_
