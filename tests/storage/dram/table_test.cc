#include "storage/dram/table.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/position.h"
#include "storage/dram/store.h"
#include "tests/storage/row/table_conformance.h"

namespace strata::storage {
namespace {

ConformanceCase CaseOf(const DramTableOptions& options) {
  ConformanceCase c;
  c.row_bytes = options.row_bytes;
  c.first = options.first;
  c.last = options.last;
  c.limit_bytes = options.limit_bytes;
  c.make = [options] { return MakeDramTable(options); };
  return c;
}

// Adds rows at positions, one batch; the rows are zero.
absl::Status AddRows(RowTable& table, const std::vector<Position>& positions, size_t row_bytes) {
  std::vector<RowRef> refs(positions.size());
  absl::Status s = table.Resolve(positions, Access::kUpdate, refs);
  if (!s.ok()) return s;
  for (const RowRef& ref : refs) std::memset(ref.row, 0, row_bytes);
  table.Release();
  return absl::OkStatus();
}

TEST_CASE("a DRAM table does what the oracle says", "[storage][dram]") {
  for (Spread spread : {Spread::kUniform, Spread::kClustered}) {
    DramTableOptions options{.row_bytes = 72, .spread = spread};
    CheckRandomOperations(CaseOf(options));
    CheckRefusals(CaseOf(options));
    // A shard in the middle, and rows of the least size.
    options = {.row_bytes = 8,
               .first = Position(0x4000000000000000ull),
               .last = Position(0x6fffffffffffffffull),
               .spread = spread};
    ConformanceCase c = CaseOf(options);
    c.seed = 2;
    CheckRandomOperations(c);
    CheckRefusals(c);
    // A narrow range: clustered whatever the option says.
    options.last = Position(options.first.value + 999);
    c = CaseOf(options);
    c.operations = 200'000;
    CheckRandomOperations(c);
    // An index of three buckets, in which rows pass every bucket.
    options = {.row_bytes = 8, .spread = spread};
    options.limit_bytes = RowStore::BytesFor({.row_bytes = 8}, 20) + RowStore::kPageSlack;
    c = CaseOf(options);
    c.positions = 20;
    c.operations = 200'000;
    CheckRandomOperations(c);
    // Grown through many sizes of the index, by a little each.
    options = {.row_bytes = 12, .spread = spread};
    c = CaseOf(options);
    c.positions = 120'000;
    c.operations = 400'000;
    c.seed = 3;
    CheckRandomOperations(c);
    // Rows of 4096 floats and metadata.
    options = {.row_bytes = 4096 * 4 + 8, .spread = spread};
    c = CaseOf(options);
    c.positions = 300;
    c.operations = 5'000;
    CheckRandomOperations(c);
    // A limit that everything just fits.
    options = {.row_bytes = 72, .spread = spread};
    options.limit_bytes = RowStore::BytesFor({.row_bytes = 72}, 4000) + RowStore::kPageSlack;
    CheckRandomOperations(CaseOf(options));
  }
}

TEST_CASE("a range of one position works", "[storage][dram]") {
  DramTableOptions options{.row_bytes = 12, .first = Position(7), .last = Position(7)};
  auto table = MakeDramTable(options);
  REQUIRE(AddRows(*table, {Position(7)}, 12).ok());
  CHECK(table->counters().rows == 1);
}

TEST_CASE("a full DRAM table refuses new rows, names bytes and keeps the old", "[storage][dram]") {
  DramTableOptions options{.row_bytes = 40};
  options.limit_bytes = RowStore::BytesFor({.row_bytes = 40}, 100) + RowStore::kPageSlack;
  auto table = MakeDramTable(options);
  std::vector<Position> full;
  for (uint64_t i = 0; i < 100; ++i) full.push_back(Position(i << 57));
  REQUIRE(AddRows(*table, full, 40).ok());
  CHECK(table->counters().dram_bytes <= options.limit_bytes);

  std::vector<Position> more = full;
  more.insert(more.begin() + 1, {Position(1), Position(2)});
  const absl::Status s = AddRows(*table, more, 40);
  REQUIRE(s.code() == absl::StatusCode::kResourceExhausted);
  CHECK(std::string(s.message()).find("needs 96 bytes") != std::string::npos);
  CHECK(std::string(s.message()).find("0 bytes are free") != std::string::npos);
  CHECK(table->counters().rows == 100);

  REQUIRE(table->Erase(std::vector<Position>{full[3], full[4]}).ok());
  std::vector<Position> fits = {Position(1), Position(2)};
  CHECK(AddRows(*table, fits, 40).ok());
  CHECK(table->counters().rows == 100);
}

TEST_CASE("the overhead is what the header says", "[storage][dram]") {
  // At the stated load: metadata (8, inside row_bytes) + 6.67 bytes of index <= 16 bytes a row.
  const RowStoreOptions options{.row_bytes = 72, .limit_bytes = uint64_t{64} << 20};
  const uint64_t rows = RowStore::CapacityFor(options);
  const double bytes = static_cast<double>(RowStore::BytesFor(options, rows));
  CHECK(bytes <= static_cast<double>(options.limit_bytes));
  CHECK(bytes / static_cast<double>(rows) - 64 - 8 <= 16.0);

  RowStore store(options);
  REQUIRE(store.Reserve(rows).ok());
  for (uint64_t i = 0; i < rows; ++i) store.Insert(Position(Mix64(i)));
  CHECK(store.bytes() <= options.limit_bytes);
  CHECK(store.Reserve(1).code() == absl::StatusCode::kResourceExhausted);
  uint64_t seen = 0;
  bool ascending = true;
  Position before{0};
  for (RowStore::Cursor at(store, Position(0), Position(~0ull)); at.Valid(); at.Next(), ++seen) {
    ascending &= seen == 0 || before < at.position();
    before = at.position();
  }
  CHECK(seen == rows);
  CHECK(ascending);
}

TEST_CASE("positions crafted to collide do not make a table slow", "[storage][dram]") {
  // 200,000 neighbours in a uniform table all have one home: without the rebuild each insertion
  // would probe thousands of buckets.
  RowStore store({.row_bytes = 8});
  const uint64_t n = 200'000;
  std::vector<Position> positions;
  for (uint64_t i = 0; i < n; ++i) positions.push_back(Position(1'000'000 + i));
  REQUIRE(store.Reserve(n).ok());
  for (Position p : positions) store.Insert(p);
  std::vector<uint32_t> slots(n);
  store.Find(positions, slots);
  bool right = true;
  for (size_t i = 0; i < n; ++i) {
    right &= slots[i] != RowStore::kNoSlot && store.PositionAt(slots[i]) == positions[i];
  }
  CHECK(right);
  uint64_t next = 0;
  for (RowStore::Cursor at(store, Position(0), Position(~0ull)); at.Valid(); at.Next()) {
    right &= at.position() == positions[next++];
  }
  CHECK(right);
  CHECK(next == n);
}

}  // namespace
}  // namespace strata::storage
