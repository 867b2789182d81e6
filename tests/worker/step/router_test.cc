#include "worker/step/router.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <utility>
#include <vector>

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

// Hashed tables of widths 1, 3 and 2, with the dense one between the first two; fields go round
// them.
ModelTables SeveralTables(uint32_t fields) {
  ModelTables t;
  t.fields = fields;
  for (const uint32_t dim : {1, 256, 3, 2}) {
    TableSpec& table = t.tables.emplace_back();
    table.id = TableId(static_cast<uint32_t>(t.tables.size() - 1));
    table.kind = dim == 256 ? TableKind::kDense : TableKind::kHashed;
    table.segments = {{"embedding", dim, {}, {}}};
  }
  for (uint32_t f = 0; f < fields; ++f) t.field_tables.push_back(std::array{0u, 2u, 3u}[f % 3]);
  return t;
}

// Examples of up to five features, of ascending fields; without `fields` every field once.
Batch DrawBatch(uint64_t seed, const ModelTables& tables, bool fields) {
  std::mt19937_64 random(seed);
  Batch batch;
  batch.Clear();
  const uint64_t distinct = 1 + random() % 300;
  for (batch.size = 0; batch.size < random() % 400; ++batch.size) {
    uint32_t field = 0;
    for (uint64_t f = fields ? random() % 5 : tables.fields; f > 0; --f, ++field) {
      if (fields) field = std::min<uint32_t>(tables.fields - 1, field + random() % 3);
      batch.keys.push_back(random() % distinct);
      if (fields) batch.fields.push_back(field);
    }
    batch.offsets.push_back(static_cast<uint32_t>(batch.keys.size()));
  }
  return batch;
}

uint32_t FieldOf(const Batch& batch, uint32_t example, uint32_t feature) {
  return batch.fields.empty() ? feature - batch.offsets[example] : batch.fields[feature];
}

TEST_CASE("keys of several tables are routed in runs, and never mix", "[router][seeds]") {
  Router router;
  for (const uint64_t seed : Seeds("router_tables", 0, 60)) {
    INFO("seed " << seed);
    const ModelTables tables = SeveralTables(1 + seed % 7);
    const Batch batch = DrawBatch(seed, tables, seed % 2 == 0);
    RoutedKeys routed;
    router.Route(tables, batch, &routed);
    // (table, position) -> features
    std::map<std::pair<uint32_t, uint64_t>, std::vector<uint32_t>> expected;
    for (uint32_t i = 0; i < batch.size; ++i) {
      for (uint32_t f = batch.offsets[i]; f < batch.offsets[i + 1]; ++f) {
        const uint32_t table = tables.field_tables[FieldOf(batch, i, f)];
        const Position p = tables.tables[table].PositionOfKey(Key(batch.keys[f]));
        expected[{table, p.value}].push_back(f);
      }
    }
    REQUIRE(routed.keys.size() == expected.size());
    REQUIRE(routed.positions.size() == expected.size());
    size_t u = 0, run = 0;
    for (const auto& [place, features] : expected) {
      if (u > 0 && u == routed.runs[run].end()) ++run;
      REQUIRE(run < routed.runs.size());
      CHECK(routed.runs[run].table == place.first);
      CHECK(routed.positions[u] == place.second);
      CHECK(tables.tables[place.first].PositionOfKey(Key(routed.keys[u])).value == place.second);
      CHECK(std::vector<uint32_t>(routed.occurrences.begin() + routed.first[u],
                                  routed.occurrences.begin() + routed.first[u + 1]) == features);
      for (const uint32_t f : features) CHECK(routed.unique_of[f] == u);
      ++u;
    }
    if (u > 0) CHECK(routed.runs.back().end() == u);
    if (u > 0) CHECK(run + 1 == routed.runs.size());
  }
}

TEST_CASE("lanes with keys of several tables: their union, and every row's place in it",
          "[router][seeds]") {
  Router router;
  const std::vector<uint32_t> widths = {1, 256, 3, 2};
  for (const uint64_t seed : Seeds("router_union", 0, 40)) {
    INFO("seed " << seed);
    const ModelTables tables = SeveralTables(5);
    std::vector<RoutedKeys> lanes(2 + seed % 3);
    std::vector<const RoutedKeys*> pointers;
    std::map<std::pair<uint32_t, uint64_t>, uint64_t> all;  // key of (table, position)
    for (size_t l = 0; l < lanes.size(); ++l) {
      router.Route(tables, DrawBatch(seed * 7 + l, tables, true), &lanes[l]);
      pointers.push_back(&lanes[l]);
      for (const KeyRun& run : lanes[l].runs) {
        for (size_t k = run.first; k < run.end(); ++k) {
          all[{run.table, lanes[l].positions[k]}] = lanes[l].keys[k];
        }
      }
    }
    UnionKeys both;
    MergeLanes(pointers, &both);
    REQUIRE(both.keys.size() == all.size());
    // Every row says which key it is of.
    std::vector<float> rows(FloatsOf(both.runs, widths));
    std::vector<std::pair<uint32_t, uint64_t>> listed;
    ForRuns(both.runs, widths, [&](const KeyRun& run, size_t begin) {
      for (size_t k = run.first; k < run.end(); ++k, begin += widths[run.table]) {
        listed.emplace_back(run.table, both.positions[k]);
        std::fill_n(&rows[begin], widths[run.table], static_cast<float>(k));
      }
    });
    CHECK(std::equal(listed.begin(), listed.end(), all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a == b.first; }));
    for (size_t l = 0; l < lanes.size(); ++l) {
      size_t k = 0, floats = 0;
      ForPlaces(lanes[l].runs, both.place[l], both.runs, widths,
                [&](size_t own, size_t at, size_t width) {
                  CHECK(own == floats);
                  floats += width;
                  for (size_t e = 0; e < width; ++e) {
                    CHECK(rows[at + e] == static_cast<float>(both.place[l][k]));
                  }
                  CHECK(both.keys[both.place[l][k]] == lanes[l].keys[k]);
                  ++k;
                });
      CHECK(k == lanes[l].keys.size());
      CHECK(floats == FloatsOf(lanes[l].runs, widths));
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
