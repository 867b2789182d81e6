// Which server holds which partitions: a pure value with a version.
#ifndef STRATA_PROTO_CORE_SHARD_MAP_H_
#define STRATA_PROTO_CORE_SHARD_MAP_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/core/partition.h"

namespace strata {

// One shard: a run of partitions and the server that owns it.
struct ShardPlace {
  ShardId id;
  PartitionRange range;
  uint32_t server = 0;  // index into the job's list of servers

  friend bool operator==(const ShardPlace&, const ShardPlace&) = default;
};

// Shards in partition order, covering every partition exactly once. Immutable after Make.
class ShardMap {
 public:
  // Error (INVALID_ARGUMENT) unless the shards cover 0 .. partitions-1 in order without gap or
  // overlap, shard k has id k, and every server index is below `servers`.
  static absl::StatusOr<ShardMap> Make(MapEpoch epoch, Partitioning partitioning, uint32_t servers,
                                       std::vector<ShardPlace> shards);

  // Every server gets `shards_per_server` shards, partitions divided as evenly as they go.
  // REQUIRES: servers >= 1, shards_per_server >= 1, their product <= partitions.
  static ShardMap Even(MapEpoch epoch, Partitioning partitioning, uint32_t servers,
                       uint32_t shards_per_server);

  MapEpoch epoch() const { return epoch_; }
  Partitioning partitioning() const { return partitioning_; }
  uint32_t servers() const { return servers_; }
  const std::vector<ShardPlace>& shards() const { return shards_; }

  // The shard that holds a position; O(log shards).
  const ShardPlace& ShardOf(Position position) const;
  Position FirstPosition(ShardId shard) const;
  Position LastPosition(ShardId shard) const;
  // Shards of one server, ascending.
  std::vector<ShardId> ShardsOf(uint32_t server) const;

  friend bool operator==(const ShardMap&, const ShardMap&) = default;

 private:
  ShardMap(MapEpoch epoch, Partitioning partitioning, uint32_t servers,
           std::vector<ShardPlace> shards)
      : epoch_(epoch), partitioning_(partitioning), servers_(servers), shards_(std::move(shards)) {}

  MapEpoch epoch_;
  Partitioning partitioning_;
  uint32_t servers_;
  std::vector<ShardPlace> shards_;
};

}  // namespace strata

#endif  // STRATA_PROTO_CORE_SHARD_MAP_H_
