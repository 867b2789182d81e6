#include "server/table/gpu_memory.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "storage/gpu/shape.h"
#include "storage/row/layout.h"

namespace strata::server {
namespace {

// Of one shard.
uint64_t Least(const TableSpec& table, storage::EvictionKind eviction) {
  if (table.kind == TableKind::kDense) return 0;
  return storage::gpu::MinimumHbmBytes(storage::RowLayout::For(table).row_bytes(), kGpuBucketSlots,
                                       eviction);
}

// In proportion to these, tables have equally many slots: a row, and some twenty bytes about it
// (storage/gpu/shape.h).
uint64_t SlotBytes(const TableSpec& table) {
  if (table.kind == TableKind::kDense) return 0;
  return storage::gpu::GpuShape{.row_bytes = storage::RowLayout::For(table).row_bytes()}.stride() +
         20;
}

uint64_t LeastOfShard(const std::vector<TableSpec>& tables, storage::EvictionKind eviction) {
  uint64_t sum = 0;
  for (const TableSpec& t : tables) sum += Least(t, eviction);
  return sum;
}

}  // namespace

uint64_t LeastGpuBytesPerServer(const std::vector<TableSpec>& tables,
                                storage::EvictionKind eviction, uint32_t shards_here) {
  return shards_here * LeastOfShard(tables, eviction);
}

absl::StatusOr<std::vector<uint64_t>> DivideHbm(const std::vector<TableSpec>& tables,
                                                storage::EvictionKind eviction,
                                                uint64_t shard_bytes, uint32_t shards_here) {
  const uint64_t least_of_shard = LeastOfShard(tables, eviction);
  // What is left when every table has its least; where that is too much already, each has its
  // share.
  const uint64_t left = shard_bytes - std::min(shard_bytes, least_of_shard);
  uint64_t sum = 0;
  for (const TableSpec& t : tables) sum += SlotBytes(t);
  std::vector<uint64_t> limits;
  for (const TableSpec& t : tables) {
    const uint64_t least = Least(t, eviction), part = SlotBytes(t);
    limits.push_back(0);
    if (least == 0) continue;
    // floor(left * part / sum), without products above 64 bits.
    limits.back() = shard_bytes < least_of_shard
                        ? shard_bytes * least / least_of_shard
                        : least + left / sum * part + left % sum * part / sum;
    if (limits.back() >= least) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("spec.storage.gpuBytesPerServer is too small: over ", shards_here,
                     " shards it leaves table \"", t.name, "\" ", limits.back(),
                     " bytes in a shard, and ", least, " are needed; set it to at least ",
                     LeastGpuBytesPerServer(tables, eviction, shards_here),
                     ", or spec.storage.shardsPerServer lower"));
  }
  return limits;
}

}  // namespace strata::server
