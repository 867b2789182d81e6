// How a job's DRAM limit on this server is divided over the tables of its shards.
// Tested by tests/server/shard/shard_life_cycle_test.cc
// Tested by tests/server/table/snapshot_test.cc
#ifndef STRATA_SERVER_TABLE_MEMORY_H_
#define STRATA_SERVER_TABLE_MEMORY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/core/table_spec.h"
#include "storage/eviction/kind.h"
#include "storage/gpu/backend.h"
#include "storage/row/table.h"
#include "storage/tier/row_tier.h"

namespace strata::server {

struct TableMemory {
  // Limits in bytes by table; 0: none, the table lies in DRAM alone.
  std::vector<uint64_t> limits;
  // Of the GPU tier above, by table; 0: none. Empty: no table has one.
  std::vector<uint64_t> hbm_limits;
  storage::EvictionKind eviction = storage::EvictionKind::kLrfu;  // of the tables with one
};

// One shard's division of `shard_bytes` = floor(spec.storage.dramBytesPerServer / shards of the job
// on this server); 0: no limit. A dense table whose rows in the shard fit in half of it lies in
// DRAM alone, and counts with all its rows; otherwise it gets half. The hashed tables share the
// rest by dram_share, none below storage::MinimumDramBytes (proto/core/dram_parts.h).
// FAILED_PRECONDITION when a table would get less than storage::MinimumDramBytes: the text names
// the table, what it gets, what it needs, and the least dramBytesPerServer that is admitted with
// `shards_here` shards.
absl::StatusOr<TableMemory> DivideMemory(const std::vector<TableSpec>& tables, Position first,
                                         Position last, uint64_t shard_bytes, uint32_t shards_here);

// The least dramBytesPerServer that every shard of `shards_here` is certain to be admitted with,
// whichever dense rows lie in it.
uint64_t LeastDramBytesPerServer(const std::vector<TableSpec>& tables, uint32_t shards_here);

// Empty tables of one shard. `below` holds what does not fit; null when no table has a limit.
// `make_gpu` makes the memory of the GPU tier; unused where no table has one.
absl::StatusOr<std::vector<std::unique_ptr<storage::RowTable>>> MakeTables(
    const std::vector<TableSpec>& tables, Position first, Position last, const TableMemory& memory,
    storage::RowTier* below, const storage::gpu::GpuBackendFactory& make_gpu = nullptr);

// Rows of a dense table in [first, last].
uint64_t DenseRows(const TableSpec& table, Position first, Position last);

}  // namespace strata::server

#endif  // STRATA_SERVER_TABLE_MEMORY_H_
