// Rows that a ticket keeps: warmed, pinned until they were pushed, and found again.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "server/table/kept_rows.h"
#include "server/table/memory.h"
#include "server/table/shard_table.h"
#include "storage/rocks/tier.h"
#include "storage/row/layout.h"
#include "storage/tiered/table.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::server {
namespace {

// The features' table of the fixture's job on a small tier, with 300 rows.
struct Fixture {
  Fixture()
      : tier(storage::OpenRocksTier({.directory = folder.path(), .partitions = kPartitions})) {
    REQUIRE(tier.ok());
    const TableSpec spec = TestTables()[0];
    const Position first(0), last(~uint64_t{0});
    TableMemory memory;
    const size_t row_bytes = storage::RowLayout::For(spec).row_bytes();
    memory.limits = {storage::MinimumDramBytes(row_bytes) + 48 * 64};  // about 64 rows
    auto rows = MakeTables({spec}, first, last, memory, tier->get());
    REQUIRE(rows.ok());
    table = std::make_unique<ShardTable>(spec, kSeed, std::move((*rows)[0]));
    std::set<Position> all;
    for (uint64_t k = 0; k < 300; ++k) all.insert(spec.PositionOfKey(Key(k)));
    positions.assign(all.begin(), all.end());
    Push(positions, nullptr);
    REQUIRE(table->counters().rows == 300);
    REQUIRE(table->counters().dram_rows < 150);
  }
  void Push(const std::vector<Position>& at, KeptRows* kept) {
    const std::vector<float> sums(at.size() * 5, 0.25f);
    TableSums update{at, sums.data(), nullptr, kept};
    size_t done = 0;
    REQUIRE(table->Apply(update, {++step, 1}, false, done).ok());
  }
  std::vector<float> Read(const std::vector<Position>& at, KeptRows* kept) {
    std::vector<float> out(at.size() * 5);
    REQUIRE(table->Read(at, out.data(), {.kept = kept}).ok());
    return out;
  }
  std::vector<Position> Some(size_t from, size_t n) const {
    return {positions.begin() + static_cast<ptrdiff_t>(from),
            positions.begin() + static_cast<ptrdiff_t>(from + n)};
  }
  static KeptRows Kept(size_t n) {
    KeptRows kept;
    kept.slots.assign(n, storage::kNoRow);
    return kept;
  }

  TempFolder folder;
  absl::StatusOr<std::unique_ptr<storage::RowTier>> tier;
  std::unique_ptr<ShardTable> table;
  std::vector<Position> positions;
  uint64_t step = 0;
};

TEST_CASE("warmed rows stay in DRAM until they are pushed", "[server][ticket]") {
  Fixture f;
  const size_t few = f.table->rows().max_batch() / 4;
  REQUIRE(few >= 3);
  const auto mine = f.Some(10, few);
  KeptRows kept = Fixture::Kept(few);
  REQUIRE(f.table->Warm(mine, kept).ok());
  CHECK(kept.pinned == few);
  CHECK(f.table->counters().pinned == few);
  CHECK(f.table->counters().rows == 300);
  for (int round = 0; round < 3; ++round) f.Read(f.positions, nullptr);  // pressure
  const uint64_t below = f.table->counters().ssd_reads;
  const auto before = f.Read(mine, &kept);
  CHECK(f.table->counters().ssd_reads == below);
  CHECK(before == f.Read(mine, nullptr));
  f.Push(mine, &kept);
  CHECK(f.table->counters().ssd_reads == below);
  CHECK(f.table->counters().pinned == 0);
  const auto after = f.Read(mine, nullptr);
  for (size_t i = 0; i < after.size(); ++i) CHECK(after[i] != before[i]);
}

TEST_CASE("warming creates nothing, and leaves what is too much where it is", "[server][ticket]") {
  Fixture f;
  std::vector<Position> absent;
  for (uint64_t k = 1000; k < 1000 + f.table->rows().max_batch() / 4; ++k) {
    absent.push_back(TestTables()[0].PositionOfKey(Key(k)));
  }
  std::sort(absent.begin(), absent.end());
  KeptRows none = Fixture::Kept(absent.size());
  REQUIRE(f.table->Warm(absent, none).ok());
  CHECK(f.table->counters().rows == 300);
  CHECK(f.table->counters().pinned == 0);
  const auto initial = f.Read(absent, &none);
  f.Push(absent, &none);  // born now, although the hints said that they are nowhere
  CHECK(f.table->counters().rows == 300 + absent.size());
  CHECK(f.Read(absent, &none) != initial);

  const uint64_t below = f.table->counters().ssd_reads;
  KeptRows all = Fixture::Kept(300);
  REQUIRE(f.table->Warm(f.positions, all).ok());
  CHECK(all.pinned == 0);
  CHECK(f.table->counters().ssd_reads == below);
}

TEST_CASE("several tickets pin at most half; each lets go of its own", "[server][ticket]") {
  Fixture f;
  const size_t n = f.table->rows().max_batch() / 2;
  std::vector<std::vector<Position>> keys;
  std::vector<KeptRows> kept;
  for (size_t i = 0; i < 5; ++i) {
    keys.push_back(f.Some(i * n / 2, n));  // overlapping
    kept.push_back(Fixture::Kept(n));
    REQUIRE(f.table->Warm(keys[i], kept[i]).ok());
    CHECK(f.table->counters().pinned <= f.table->rows().max_batch());
  }
  CHECK(kept[4].pinned < n);  // no room was left
  f.Read(f.positions, nullptr);
  f.Push(f.positions, nullptr);
  std::mt19937 random(1);
  std::vector<size_t> order = {0, 1, 2, 3, 4};
  std::shuffle(order.begin(), order.end(), random);
  for (const size_t i : order) f.table->Unpin(keys[i], kept[i]);
  CHECK(f.table->counters().pinned == 0);
}

}  // namespace
}  // namespace strata::server
