// A table whose hottest rows lie in a GPU's memory (HBM), above a table in DRAM or a tiered one.
//
// Resolve: rows found in HBM are used there. The others are looked for among the rows that wait to
// be written back, then read from below in one batch (of at most as many rows as there are staging
// places), and move up; rows that exist nowhere are born in HBM, or answered null, as Access says.
// A row whose bucket holds nothing but rows in use, or pinned, is served by the table below, where
// it stays; its RowSlot is a number that is never a right hint, and Pin ends at it. So are rows
// that are read while nothing can be written below.
//
// Leaving: when a bucket is full, its row with the lowest score leaves (then the lowest slot), by
// the same policies as in DRAM (score.h). Clean rows are dropped, dirty ones copied to a
// staging place. All that wait there are written below in one batch sorted by position when places
// run out, by Flush, or by Tidy. A row that is referenced before that comes back from its place. A
// failed write drops nothing: the call returns the error, every row stays, and the call may be
// repeated. Which rows leave depends on the calls alone, not on backend or threads.
//
// Rows in HBM are gathered and updated there by those who ask for it (storage/row/device_rows.h),
// and copied to the host and back by Resolve.
//
// References are counted as a tiered table does; hbm_hits are those found in HBM. A row that is
// written back counts as no reference below.
//
// Bytes: shape.h gives the formula; all of it is allocated when the table is made, and
// hbm_bytes says how much; beside it a device's backend takes memory for its calls
// (storage/gpu/device/memory.h), and what DeviceRows::AllocateThere gives comes on top
// (hbm_extra_bytes). max_batch() = min(slots / 2, those of the table below and of the backend), and
// Pin holds at most half of the slots, each row 255 times at most. Beside the limit a call needs
// host memory: lists of at most 80 bytes a position, 32 a staging place, and, for Scan and Flush,
// 24 for each of at most 2^20 dirty rows at a time.
#ifndef STRATA_STORAGE_GPU_TABLE_H_
#define STRATA_STORAGE_GPU_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "storage/eviction/kind.h"
#include "storage/gpu/backend.h"
#include "storage/row/table.h"

namespace strata::storage::gpu {

struct GpuTableOptions {
  size_t row_bytes = 0;  // RowLayout::row_bytes()
  // The shard's range of positions, both inclusive; the same as of the table below.
  Position first{0};
  Position last{~0ull};
  // Hard limit on the device's memory: at least MinimumHbmBytes (shape.h).
  uint64_t hbm_limit_bytes = 0;
  uint32_t bucket_slots = 64;  // 32, 64 or 128
  EvictionKind eviction = EvictionKind::kLrfu;
};

// Takes the table below, with the rows it has. INVALID_ARGUMENT names the option, its value and its
// limit; RESOURCE_EXHAUSTED requested and free bytes of the device.
absl::StatusOr<std::unique_ptr<RowTable>> MakeGpuTable(const GpuTableOptions& options,
                                                       std::unique_ptr<RowTable> below,
                                                       const GpuBackendFactory& make_backend);

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_TABLE_H_
