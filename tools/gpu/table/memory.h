// A GPU table for bars, and the lists of calls on it, in a bar's memory.
// Tested by tests/tools/gpu/table/work_test.cc
#ifndef STRATA_TOOLS_GPU_TABLE_MEMORY_H_
#define STRATA_TOOLS_GPU_TABLE_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/cuda/api/memory.h"
#include "storage/eviction/kind.h"
#include "storage/gpu/shape.h"
#include "storage/gpu/slots.h"
#include "tools/gpu/bars/bar.h"

namespace strata::gpu_check {

// With as many buckets as their rows fit into table_bytes, at least one; a power of two.
storage::gpu::GpuShape BarShape(size_t table_bytes, uint32_t row_bytes,
                                storage::EvictionKind eviction, uint32_t places);

// How many sets of keys take turns, so that a set's lines have left the last-level cache when its
// next turn comes: as many as have four times its bytes together, at most kMostKeySets. set_bytes:
// of the table's memory that finding one set touches.
inline constexpr uint32_t kMostKeySets = 16;
uint32_t KeySets(size_t cache_bytes, double set_bytes);

// The table in `memory`, which has shape.bytes(): zeroed, with random rows, and no slot taken.
// Waits.
absl::StatusOr<storage::gpu::GpuSlots> MakeBarTable(const BarContext& context,
                                                    const storage::gpu::GpuShape& shape,
                                                    const ops::gpu::Buffer& memory);

// What a bar is sure of after it was measured: row i at `to` is row slots[i] of the table, for some
// i below n. slots: (n), on the host. kInternal names the first that is not, and `what`.
absl::Status CheckRows(const BarContext& context, const char* what, const storage::gpu::GpuSlots& t,
                       const uint32_t* slots, uint32_t n, const uint8_t* to);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_TABLE_MEMORY_H_
