#include "proto/core/shard_map.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace strata {

absl::StatusOr<ShardMap> ShardMap::Make(MapEpoch epoch, Partitioning partitioning, uint32_t servers,
                                        std::vector<ShardPlace> shards) {
  uint32_t next = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    const ShardPlace& s = shards[i];
    if (s.id.value != i) {
      return absl::InvalidArgumentError(
          absl::StrCat("shard map: entry ", i, " has shard id ", s.id.value, ", expected ", i));
    }
    if (s.range.first.value != next || s.range.last < s.range.first ||
        s.range.last.value >= partitioning.count()) {
      return absl::InvalidArgumentError(absl::StrCat("shard map: shard ", i, " holds partitions ",
                                                     s.range.first.value, "..", s.range.last.value,
                                                     ", expected a run starting at ", next,
                                                     " below ", partitioning.count()));
    }
    if (s.server >= servers) {
      return absl::InvalidArgumentError(
          absl::StrCat("shard map: shard ", i, " names server ", s.server, " of ", servers));
    }
    next = s.range.last.value + 1;
  }
  if (next != partitioning.count()) {
    return absl::InvalidArgumentError(absl::StrCat("shard map: partitions from ", next, " to ",
                                                   partitioning.count() - 1, " have no shard"));
  }
  return ShardMap(epoch, partitioning, servers, std::move(shards));
}

ShardMap ShardMap::Even(MapEpoch epoch, Partitioning partitioning, uint32_t servers,
                        uint32_t shards_per_server) {
  const uint64_t n = static_cast<uint64_t>(servers) * shards_per_server;
  std::vector<ShardPlace> shards;
  shards.reserve(n);
  for (uint64_t i = 0; i < n; ++i) {
    const auto first = static_cast<uint32_t>(i * partitioning.count() / n);
    const auto end = static_cast<uint32_t>((i + 1) * partitioning.count() / n);
    shards.push_back({ShardId(static_cast<uint32_t>(i)),
                      {PartitionId(first), PartitionId(end - 1)},
                      static_cast<uint32_t>(i / shards_per_server)});
  }
  return ShardMap(epoch, partitioning, servers, std::move(shards));
}

const ShardPlace& ShardMap::ShardOf(Position position) const {
  const PartitionId p = partitioning_.Of(position);
  auto it = std::upper_bound(
      shards_.begin(), shards_.end(), p,
      [](PartitionId value, const ShardPlace& s) { return value < s.range.first; });
  return *(it - 1);
}

Position ShardMap::FirstPosition(ShardId shard) const {
  return partitioning_.First(shards_[shard.value].range.first);
}

Position ShardMap::LastPosition(ShardId shard) const {
  return partitioning_.Last(shards_[shard.value].range.last);
}

std::vector<ShardId> ShardMap::ShardsOf(uint32_t server) const {
  std::vector<ShardId> out;
  for (const ShardPlace& s : shards_) {
    if (s.server == server) out.push_back(s.id);
  }
  return out;
}

}  // namespace strata
