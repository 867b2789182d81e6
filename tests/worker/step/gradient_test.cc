// Sums of gradients along the lane tree, and of the means that downpour accumulates.
#include "worker/step/gradient.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "proto/core/position.h"
#include "proto/core/table_spec.h"

namespace strata {
namespace {

// Rows of two weights; with a score a push has two counts more.
TableSpec Features(bool scored) {
  TableSpec table;
  table.segments = {{"weight", 2, {}, {}}};
  table.life_cycle.removal.scored = scored;
  return table;
}

// Rows at the given positions, which ascend.
Gradient Of(uint64_t examples, std::initializer_list<std::pair<uint64_t, std::vector<float>>> rows,
            std::vector<float> dense) {
  Gradient g;
  g.examples = examples;
  std::vector<uint64_t> keys, positions;
  for (const auto& [position, values] : rows) {
    positions.push_back(position);
    keys.push_back(Features(false).KeyAtPosition(Position(position)).value);
    g.rows.insert(g.rows.end(), values.begin(), values.end());
  }
  g.keys = std::move(keys);
  g.positions = std::move(positions);
  if (!g.keys.empty()) g.runs = {{0, 0, g.keys.size()}};
  g.dense = std::move(dense);
  return g;
}

TEST_CASE("means of unlike numbers of examples are added as they are", "[gradient]") {
  const TableSpec table = Features(false);
  // Of 4 and of 2 examples, and one that is a mean already.
  const Gradient a = Of(4, {{3, {4, 8}}, {5, {12, -4}}}, {40, 2});
  const Gradient b = Of(2, {{5, {6, 6}}, {9, {-2, 1}}}, {3, 8});
  const Gradient c = Of(1, {{1, {0.5f, 7}}, {9, {2, 2}}}, {1, 1});
  const Gradient ab = AddMeans({&table, 1}, a, b);
  CHECK(ab.examples == 1);
  CHECK(ab.positions == std::vector<uint64_t>{3, 5, 9});
  CHECK(ab.rows == std::vector<float>{1, 2, 3 + 3, -1 + 3, -1, 0.5f});
  CHECK(ab.dense == std::vector<float>{10 + 1.5f, 0.5f + 4});
  for (size_t i = 0; i < ab.keys.size(); ++i) {
    CHECK(table.PositionOfKey(Key(ab.keys[i])).value == ab.positions[i]);
  }
  const Gradient abc = AddMeans({&table, 1}, ab, c);
  CHECK(abc.examples == 1);
  CHECK(abc.positions == std::vector<uint64_t>{1, 3, 5, 9});
  CHECK(abc.rows == std::vector<float>{0.5f, 7, 1, 2, 6, 2, 1, 2.5f});
  CHECK(abc.dense == std::vector<float>{12.5f, 5.5f});
}

TEST_CASE("shows and clicks are sums in a sum of means", "[gradient]") {
  const TableSpec table = Features(true);
  REQUIRE(table.push_dim() == 4);
  const Gradient a = Of(4, {{3, {4, 8, 3, 1}}, {5, {12, -4, 4, 0}}}, {});
  const Gradient b = Of(2, {{5, {6, 6, 2, 2}}}, {2});
  const Gradient sum = AddMeans({&table, 1}, a, b);
  CHECK(sum.rows == std::vector<float>{1, 2, 3, 1, 6, 2, 6, 2});
  CHECK(sum.dense == std::vector<float>{1});
}

TEST_CASE("rows of several tables are added by table, each with its width and counts",
          "[gradient]") {
  std::vector<TableSpec> tables(3);
  tables[0].segments = {{"weight", 1, {}, {}}};
  tables[2] = Features(true);
  for (uint32_t t = 0; t < 3; ++t) tables[t].id = TableId(t);
  const auto of = [&](uint64_t examples, const KeyRuns& runs, std::vector<uint64_t> positions,
                      std::vector<float> rows) {
    Gradient g;
    g.examples = examples;
    g.runs = runs;
    std::vector<uint64_t> keys;
    for (const KeyRun& run : runs) {
      for (size_t i = run.first; i < run.end(); ++i) {
        keys.push_back(tables[run.table].KeyAtPosition(Position(positions[i])).value);
      }
    }
    g.keys = std::move(keys);
    g.positions = std::move(positions);
    g.rows = std::move(rows);
    return g;
  };
  // The same positions in both tables.
  const Gradient a = of(2, {{0, 0, 2}, {2, 2, 1}}, {3, 7, 3}, {2, 4, 6, 8, 1, 1});
  const Gradient b = of(4, {{2, 0, 2}}, {1, 3}, {4, 4, 2, 0, 8, 8, 3, 2});
  const Gradient sum = AddGradients(tables, a, b);
  CHECK(sum.runs == KeyRuns{{0, 0, 2}, {2, 2, 2}});
  CHECK(sum.positions == std::vector<uint64_t>{3, 7, 1, 3});
  CHECK(sum.rows == std::vector<float>{2, 4, 4, 4, 2, 0, 14, 16, 4, 3});
  for (size_t i = 0; i < 4; ++i) {
    CHECK(tables[i < 2 ? 0 : 2].PositionOfKey(Key(sum.keys[i])).value == sum.positions[i]);
  }
  const Gradient means = AddMeans(tables, b, a);
  CHECK(means.runs == sum.runs);
  CHECK(means.rows == std::vector<float>{1, 2, 1, 1, 2, 0, 5, 6, 4, 3});
}

TEST_CASE("sums of lanes are not divided", "[gradient]") {
  const TableSpec table = Features(false);
  const Gradient a = Of(4, {{3, {4, 8}}, {5, {12, -4}}}, {});
  const Gradient b = Of(2, {{5, {6, 6}}}, {3});
  const Gradient sum = AddGradients({&table, 1}, a, b);
  CHECK(sum.examples == 6);
  CHECK(sum.positions == std::vector<uint64_t>{3, 5});
  CHECK(sum.rows == std::vector<float>{4, 8, 18, 2});
  CHECK(sum.dense == std::vector<float>{3});
}

}  // namespace
}  // namespace strata
