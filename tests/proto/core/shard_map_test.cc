#include "proto/core/shard_map.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

namespace strata {
namespace {

ShardPlace Place(uint32_t id, uint32_t first, uint32_t last, uint32_t server) {
  return {ShardId(id), {PartitionId(first), PartitionId(last)}, server};
}

TEST_CASE("an even map covers every partition once, evenly", "[shard_map]") {
  for (uint32_t partitions : {8u, 64u, 4096u}) {
    for (uint32_t servers : {1u, 2u, 3u, 7u}) {
      const Partitioning p(partitions);
      const uint32_t per_server = partitions == 8 ? 1 : 4;
      const ShardMap map = ShardMap::Even(MapEpoch(5), p, servers, per_server);
      CHECK(map.epoch() == MapEpoch(5));
      REQUIRE(map.shards().size() == servers * per_server);
      // What Make accepts is what covers.
      CHECK(ShardMap::Make(map.epoch(), p, servers, map.shards()).value() == map);
      uint32_t least = ~0u;
      uint32_t most = 0;
      for (const ShardPlace& s : map.shards()) {
        least = std::min(least, s.range.size());
        most = std::max(most, s.range.size());
      }
      CHECK(most - least <= 1);
      for (uint32_t s = 0; s < servers; ++s) CHECK(map.ShardsOf(s).size() == per_server);
    }
  }
}

TEST_CASE("ShardOf agrees with the ranges", "[shard_map]") {
  const Partitioning p(64);
  const ShardMap map = *ShardMap::Make(
      MapEpoch(1), p, 3, {Place(0, 0, 0, 2), Place(1, 1, 30, 0), Place(2, 31, 63, 0)});
  for (const ShardPlace& s : map.shards()) {
    CHECK(map.ShardOf(map.FirstPosition(s.id)) == s);
    CHECK(map.ShardOf(map.LastPosition(s.id)) == s);
  }
  CHECK(map.FirstPosition(ShardId(0)) == Position(0));
  CHECK(map.LastPosition(ShardId(2)) == Position(~0ull));
  std::mt19937_64 random(1);
  for (int i = 0; i < 10'000; ++i) {
    const Position at(random());
    const ShardPlace& s = map.ShardOf(at);
    REQUIRE(s.range.Contains(p.Of(at)));
    REQUIRE(map.FirstPosition(s.id) <= at);
    REQUIRE(at <= map.LastPosition(s.id));
  }
  CHECK(map.ShardsOf(0) == std::vector<ShardId>{ShardId(1), ShardId(2)});
  CHECK(map.ShardsOf(1).empty());
}

TEST_CASE("maps that do not cover are refused", "[shard_map]") {
  const Partitioning p(8);
  const auto refused = [&](std::vector<ShardPlace> shards, const std::string& part) {
    const auto map = ShardMap::Make(MapEpoch(1), p, 2, std::move(shards));
    INFO(map.status().ToString());
    CHECK(map.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(std::string(map.status().message()).find(part) != std::string::npos);
  };
  refused({}, "from 0 to 7");
  refused({Place(0, 0, 6, 0)}, "from 7 to 7");
  refused({Place(0, 1, 7, 0)}, "starting at 0");
  refused({Place(0, 0, 3, 0), Place(1, 5, 7, 0)}, "starting at 4");
  refused({Place(0, 0, 3, 0), Place(1, 3, 7, 0)}, "starting at 4");
  refused({Place(0, 0, 8, 0)}, "below 8");
  refused({Place(0, 0, ~0u, 0)}, "below 8");
  refused({Place(1, 0, 7, 0)}, "shard id 1");
  refused({Place(0, 0, 7, 2)}, "server 2 of 2");
}

}  // namespace
}  // namespace strata
