#include "worker/step/router.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "tests/seed.h"

namespace strata {
namespace {

TableSpec Features() {
  TableSpec t;
  t.id = TableId(0);
  t.kind = TableKind::kHashed;
  t.segments = {{"weight", 1, {}, {}}};
  return t;
}

// Any key is legal: the extremes are among the drawn ones.
std::vector<uint64_t> DrawKeys(uint64_t seed, size_t n, uint64_t distinct) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> keys;
  for (size_t i = 0; i < n; ++i) {
    const uint64_t k = random() % distinct;
    keys.push_back(k == 0 ? 0 : k == 1 ? ~0ull : k);
  }
  return keys;
}

TEST_CASE("routing lists every distinct key once, by position, with its occurrences in order",
          "[router][seeds]") {
  const TableSpec table = Features();
  Router router;
  for (const uint64_t seed : Seeds("router", 0, 30)) {
    INFO("seed " << seed);
    const auto keys = DrawKeys(seed, seed * 97 % 3000, 1 + seed * 31 % 1000);
    RoutedKeys routed;
    router.Route(table, keys, &routed);
    std::map<uint64_t, std::vector<uint32_t>> expected;  // position -> features
    for (size_t f = 0; f < keys.size(); ++f) {
      expected[table.PositionOfKey(Key(keys[f])).value].push_back(static_cast<uint32_t>(f));
    }
    REQUIRE(routed.keys.size() == expected.size());
    REQUIRE(routed.first.size() == expected.size() + 1);
    size_t u = 0;
    for (const auto& [position, features] : expected) {
      CHECK(routed.positions[u] == position);
      CHECK(table.PositionOfKey(Key(routed.keys[u])).value == position);
      const std::vector<uint32_t> got(routed.occurrences.begin() + routed.first[u],
                                      routed.occurrences.begin() + routed.first[u + 1]);
      CHECK(got == features);
      for (uint32_t f : features) CHECK(routed.unique_of[f] == u);
      ++u;
    }
  }
}

TEST_CASE("the union of lanes holds every lane's keys at their places", "[router]") {
  const TableSpec table = Features();
  Router router;
  for (size_t lanes : {1, 2, 5}) {
    std::vector<RoutedKeys> routed(lanes);
    std::vector<const RoutedKeys*> pointers;
    std::map<uint64_t, uint64_t> expected;
    for (size_t l = 0; l < lanes; ++l) {
      router.Route(table, DrawKeys(l + 7, 500 * l + 3, 900), &routed[l]);
      pointers.push_back(&routed[l]);
      for (size_t i = 0; i < routed[l].keys.size(); ++i) {
        expected[routed[l].positions[i]] = routed[l].keys[i];
      }
    }
    UnionKeys all;
    MergeLanes(pointers, &all);
    REQUIRE(all.keys.size() == expected.size());
    size_t i = 0;
    for (const auto& [position, key] : expected) {
      CHECK(all.positions[i] == position);
      CHECK(all.keys[i] == key);
      ++i;
    }
    for (size_t l = 0; l < lanes; ++l) {
      for (size_t u = 0; u < routed[l].keys.size(); ++u) {
        CHECK(all.keys[all.place[l][u]] == routed[l].keys[u]);
      }
    }
  }
}

TEST_CASE("splitting by shard agrees with asking the map for every position", "[router]") {
  const ShardMap map = ShardMap::Even(MapEpoch(1), Partitioning(64), 3, 4);
  const TableSpec table = Features();
  Router router;
  RoutedKeys routed;
  router.Route(table, DrawKeys(3, 400, 1000), &routed);
  size_t next = 0;
  for (const ShardRun& run : SplitByShard(map, routed.positions)) {
    CHECK(run.begin == next);
    CHECK(run.begin < run.end);
    for (size_t i = run.begin; i < run.end; ++i) {
      CHECK(map.ShardOf(Position(routed.positions[i])).id == run.shard);
    }
    CHECK(map.shards()[run.shard.value].server == run.server);
    next = run.end;
  }
  CHECK(next == routed.positions.size());
}

}  // namespace
}  // namespace strata
