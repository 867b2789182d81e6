#include "server/dram_estimate.h"

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/core/ids.h"
#include "proto/core/table_spec.h"
#include "server/server_load.h"
#include "server/table/memory.h"
#include "storage/dram/store.h"
#include "storage/row/layout.h"
#include "storage/tiered/options.h"

namespace strata::server {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// A hashed table of each so many rows, and a dense one without any.
ServerLoad LoadOf(const std::vector<uint64_t>& rows, uint64_t dram_bytes) {
  ServerLoad load;
  load.shards_here = 4;
  load.dram_bytes = dram_bytes;
  for (const uint64_t n : rows) {
    if (load.tables.size() == 1) {
      TableSpec& dense = load.tables.emplace_back();
      dense.id = TableId(1);
      dense.kind = TableKind::kDense;
      dense.segments.push_back({"dense", 16, {}, {}});
      load.of_table.emplace_back();
    }
    TableSpec& table = load.tables.emplace_back();
    table.id = TableId(static_cast<uint32_t>(load.tables.size() - 1));
    table.name = absl::StrCat("t", table.id.value);
    table.segments.push_back({"embedding", 16, {}, {OptimizerType::kAdagrad}});
    load.of_table.push_back({.rows = n});
    load.rows += n;
  }
  return load;
}

ServerLoad With(ServerLoad load, const std::vector<uint32_t>& shares) {
  REQUIRE(shares.size() == load.tables.size());
  for (size_t t = 0; t < shares.size(); ++t) {
    if (shares[t] > 0) load.tables[t].dram_share = shares[t];
  }
  return load;
}

uint64_t InDram(const ServerLoad& load) {
  uint64_t bytes = 0;
  for (const TableInDram& t : TablesInDram(load)) bytes += t.in_dram();
  return bytes;
}

TEST_CASE("parts are those that servers divide, and rows that need no more have room",
          "[dram_estimate]") {
  ServerLoad load = LoadOf({100'000, 5000, 4000}, 4 * kMiB);
  load.tables[2].dram_share = 3;
  load.tables[2].segments[0].dim = 64;
  load.shards_here = 1;
  const auto tables = TablesInDram(load);
  const auto memory =
      DivideMemory(load.tables, Position(0), Position(~uint64_t{0}), load.dram_bytes, 1);
  REQUIRE(memory.ok());
  REQUIRE(tables.size() == 4);
  for (const size_t t : {0, 2, 3}) {
    INFO(t);
    CHECK(tables[t].part >= memory->limits[t]);
    CHECK(tables[t].part - memory->limits[t] < 64);  // a part of the empty dense table's index
    storage::TieredOptions options;
    options.row_bytes = storage::RowLayout::For(load.tables[t]).row_bytes();
    options.dram_limit_bytes = tables[t].needed;
    CHECK(storage::RowStore::CapacityFor(storage::TieredStoreOptions(options)) ==
          load.of_table[t].rows);
  }
  CHECK(tables[2].part / 3 == tables[0].part);
  CHECK(tables[0].in_dram() == tables[0].part);
  CHECK(tables[3].in_dram() == tables[3].needed);
  // Several shards have not all the same rows.
  load.shards_here = 4;
  CHECK(TablesInDram(load)[0].needed > tables[0].needed);
  CHECK(TablesInDram(load)[0].needed < tables[0].needed * 105 / 100);
}

TEST_CASE("of a big table and four small ones the big one has what these leave",
          "[dram_estimate]") {
  const ServerLoad load = LoadOf({1'000'000, 2000, 2000, 2000, 2000}, 64 * kMiB);
  const auto now = TablesInDram(load);
  REQUIRE(now[0].in_dram() < 13 * kMiB);
  const std::vector<uint32_t> shares = FittingShares(load);
  REQUIRE(shares.size() == 6);
  CHECK(shares[1] == 0);
  CHECK(shares[2] == shares[5]);
  const ServerLoad fitting = With(load, shares);
  const auto then = TablesInDram(fitting);
  for (const size_t t : {2, 3, 4, 5}) CHECK(then[t].in_dram() == then[t].needed);
  CHECK(InDram(fitting) > load.dram_bytes * 99 / 100);
  // They are small numbers, and what they give is as good as it gets.
  CHECK(std::accumulate(shares.begin(), shares.end(), 0u) <= 1000);
  CHECK(FittingShares(fitting).empty());
}

TEST_CASE("where all rows have room together, all have", "[dram_estimate]") {
  ServerLoad load = LoadOf({200'000, 50'000, 1000}, 0);
  uint64_t needed = 0;
  load.dram_bytes = 1;
  for (const TableInDram& t : TablesInDram(load)) needed += t.needed;
  load.dram_bytes = needed * 102 / 100;
  REQUIRE(InDram(load) < needed * 8 / 10);
  const auto then = TablesInDram(With(load, FittingShares(load)));
  for (const TableInDram& t : then) CHECK(t.in_dram() == t.needed);
}

TEST_CASE("tables that are too big for their parts have equal ones", "[dram_estimate]") {
  const std::vector<uint32_t> shares =
      FittingShares(LoadOf({1'000'000, 1000, 2'000'000}, 64 * kMiB));
  REQUIRE(shares.size() == 4);
  CHECK(shares[0] == shares[3]);
  CHECK(shares[2] * 20 < shares[0]);
}

TEST_CASE("nothing fits better than what is there", "[dram_estimate]") {
  CHECK(FittingShares(LoadOf({1'000'000, 2'000'000}, 64 * kMiB)).empty());  // both need more
  CHECK(FittingShares(LoadOf({100'000, 1000}, 1024 * kMiB)).empty());       // both have room
  CHECK(FittingShares(LoadOf({1'000'000}, 64 * kMiB)).empty());             // there is one
  CHECK(FittingShares(LoadOf({1'000'000, 1000}, 0)).empty());               // no limit
  CHECK(FittingShares(LoadOf({0, 0}, 64 * kMiB)).empty());                  // no rows
  const ServerLoad load = With(LoadOf({1'000'000, 2'000'000}, 64 * kMiB), {9, 0, 1});
  CHECK(FittingShares(load).empty());  // all of it is used
}

TEST_CASE("shares of a thousand tables are within their limits", "[dram_estimate]") {
  std::vector<uint64_t> rows(1023, 100);
  rows.push_back(5'000'000);
  const ServerLoad load = LoadOf(rows, 512 * kMiB);
  const std::vector<uint32_t> shares = FittingShares(load);
  REQUIRE(shares.size() == 1025);
  for (size_t t = 0; t < shares.size(); ++t) {
    if (t != 1) REQUIRE(shares[t] >= 1);
    REQUIRE(shares[t] <= 1'000'000);
  }
  CHECK(InDram(With(load, shares)) > load.dram_bytes * 98 / 100);
}

}  // namespace
}  // namespace strata::server
