// How a job's HBM limit on this server is divided over the tables of its shards.
#ifndef STRATA_SERVER_TABLE_GPU_MEMORY_H_
#define STRATA_SERVER_TABLE_GPU_MEMORY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/core/table_spec.h"
#include "storage/eviction/kind.h"

namespace strata::server {

// One shard's division of `shard_bytes` = floor(spec.storage.gpuBytesPerServer / shards of the job
// on this server), by table; 0: the table has no rows in HBM. Hashed tables share it so that each
// has about as many rows there; dense ones have none: every row of theirs is used in every step, on
// the host.
// FAILED_PRECONDITION when a table would get less than storage::gpu::MinimumHbmBytes: the text
// names the table, what it gets, what it needs, and the least gpuBytesPerServer that is admitted
// with `shards_here` shards.
absl::StatusOr<std::vector<uint64_t>> DivideHbm(const std::vector<TableSpec>& tables,
                                                storage::EvictionKind eviction,
                                                uint64_t shard_bytes, uint32_t shards_here);

// The least gpuBytesPerServer that is admitted with `shards_here` shards.
uint64_t LeastGpuBytesPerServer(const std::vector<TableSpec>& tables,
                                storage::EvictionKind eviction, uint32_t shards_here);

// Slots of a bucket of every GPU table of a server.
inline constexpr uint32_t kGpuBucketSlots = 64;

// Positions of a call of one on a device: twice a chunk of rows that a shard asks for at once
// (shard_table.h).
inline constexpr uint32_t kGpuDeviceBatch = 4096;

}  // namespace strata::server

#endif  // STRATA_SERVER_TABLE_GPU_MEMORY_H_
