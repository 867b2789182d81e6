// A snapshot against an ordered map: whatever happens while it is read, it is the table as it was
// when it began.
#include "server/table/snapshot.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "server/table/memory.h"
#include "server/table/shard_table.h"
#include "storage/rocks/tier.h"
#include "storage/row/hash.h"
#include "tests/seed.h"
#include "tests/temp_folder.h"

namespace strata::server {
namespace {

using Rows = std::map<uint64_t, std::vector<uint8_t>>;

// Rows of 8 KiB, so that a piece of a snapshot is some dozen rows.
TableSpec Spec(uint32_t dim) {
  TableSpec spec;
  spec.id = TableId(0);
  spec.name = "features";
  spec.segments = {{"a", dim, {}, {OptimizerType::kAdagrad, 0.1f}}};
  return spec;
}

struct Bench {
  Bench(uint64_t seed, uint32_t dim, bool limited) : random(seed), spec(Spec(dim)) {
    auto opened =
        storage::OpenRocksTier({.directory = folder.path() + "/tier", .partitions = kParts});
    REQUIRE(opened.ok());
    tier = *std::move(opened);
    const Position first(0), last(~uint64_t{0});
    const uint64_t bytes = limited ? LeastDramBytesPerServer({spec}, 1) : 0;
    const auto memory = DivideMemory({spec}, first, last, bytes, 1);
    REQUIRE(memory.ok());
    auto rows = MakeTables({spec}, first, last, *memory, tier.get());
    REQUIRE(rows.ok());
    table = std::make_unique<ShardTable>(spec, 1, std::move((*rows)[0]));
  }
  static constexpr uint32_t kParts = 16;

  // A commit: updates, births, gradients that are refused, and now and then removals.
  void Commit(size_t most) {
    ++step;
    std::set<uint64_t> touched;
    const size_t n = random() % most;
    while (touched.size() < n) touched.insert(positions[random() % positions.size()]);
    std::vector<Position> at;
    std::vector<float> values;
    for (const uint64_t p : touched) {
      at.emplace_back(p);
      const bool refused = random() % 10 == 0;
      for (uint32_t i = 0; i < spec.dim(); ++i) {
        values.push_back(refused ? std::nanf("") : static_cast<float>(random() % 100) / 10);
      }
    }
    size_t done = 0;
    REQUIRE(table->Apply({at, values.data(), nullptr}, {step, 1}, false, done).ok());
    if (random() % 2 == 0) return;
    std::vector<Position> gone;
    for (const Position p : at) {
      if (random() % 3 == 0) gone.push_back(p);
    }
    REQUIRE(table->Erase(gone).ok());
  }

  Rows All() {
    Rows out;
    REQUIRE(table->rows()
                .Scan(Position(0), Position(~uint64_t{0}),
                      [&](Position p, std::span<const uint8_t> row) {
                        out[p.value].assign(row.begin(), row.end());
                        return absl::OkStatus();
                      })
                .ok());
    return out;
  }

  TableSnapshot::Options Options() {
    return {.table = spec.id,
            .row_bytes = table->layout().row_bytes(),
            .rows = table->counters().rows,
            .step = step,
            .steps_tell = table->StepsTell(step)};
  }

  TempFolder folder;
  std::mt19937_64 random;
  const TableSpec spec;
  std::unique_ptr<storage::RowTier> tier;
  std::unique_ptr<ShardTable> table;
  std::vector<uint64_t> positions;
  uint64_t step = 0;
};

storage::HashSum HashOf(const Bench& bench, const Rows& rows) {
  storage::HashSum sum;
  for (const auto& [p, row] : rows) {
    sum += storage::HashRow(bench.spec.id, bench.spec.KeyAtPosition(Position(p)), row);
  }
  return sum;
}

// Reads one piece, checks its order, and adds it to `out`.
void ReadPiece(Bench& bench, TableSnapshot& snapshot, Rows& out, std::set<uint64_t>* erased) {
  RowBlock block;
  REQUIRE(snapshot.Next(bench.table->rows(), block).ok());
  const size_t row_bytes = bench.table->layout().row_bytes();
  REQUIRE(block.rows.size() == block.positions.size() * row_bytes);
  REQUIRE(block.rows.size() <= TableSnapshot::kPieceBytes + row_bytes);
  for (size_t i = 0; i < block.positions.size(); ++i) {
    const uint64_t p = block.positions[i].value;
    REQUIRE((out.empty() || out.rbegin()->first < p));
    const uint8_t* row = block.rows.data() + i * row_bytes;
    out[p].assign(row, row + row_bytes);
  }
  if (erased == nullptr) REQUIRE(block.erased.empty());
  for (const Position p : block.erased) {
    REQUIRE((erased->empty() || *erased->rbegin() < p.value));
    erased->insert(p.value);
  }
}

// Two snapshots overlap; the second begins while the first is read.
void Overlapping(Bench& bench) {
  struct Running {
    std::unique_ptr<TableSnapshot> snapshot;
    Rows expected, read;
  };
  std::vector<Running> running;
  int begun = 0;
  while (begun < 4 || !running.empty()) {
    if (begun < 4 && running.size() < 2 && bench.random() % 3 == 0) {
      running.push_back({std::make_unique<TableSnapshot>(bench.Options()), bench.All(), {}});
      bench.table->Watch(running.back().snapshot.get());
      ++begun;
    }
    bench.Commit(60);
    for (size_t i = 0; i < running.size(); ++i) {
      Running& r = running[i];
      REQUIRE(r.snapshot->held() % (8 + bench.table->layout().row_bytes()) == 0);
      for (size_t pieces = bench.random() % 4; pieces > 0 && !r.snapshot->done(); --pieces) {
        ReadPiece(bench, *r.snapshot, r.read, nullptr);
      }
      if (!r.snapshot->done()) continue;
      REQUIRE(r.read == r.expected);
      REQUIRE(r.snapshot->held() == 0);
      bench.table->Unwatch(r.snapshot.get());
      running.erase(running.begin() + static_cast<ptrdiff_t>(i--));
    }
  }
}

// Increment after increment over one base gives what the table is at each moment, and its hash.
void Increments(Bench& bench) {
  Rows base = bench.All();
  storage::HashSum hash = HashOf(bench, base);
  bench.table->changes().Begin(bench.step, base.size());
  for (int round = 0; round < 4; ++round) {
    for (uint64_t i = bench.random() % 6; i > 0; --i) bench.Commit(60);
    const Rows expected = bench.All();
    REQUIRE(bench.table->changes().active());
    ChangeList::Changes changes = bench.table->changes().Take();
    TableSnapshot::Options options = bench.Options();
    options.changed = changes.positions;
    options.base_step = changes.base_step;
    TableSnapshot snapshot(options);
    bench.table->Watch(&snapshot);
    bench.table->changes().Begin(bench.step, expected.size());
    Rows read;
    std::set<uint64_t> erased;
    while (!snapshot.done()) {
      bench.Commit(40);
      if (!snapshot.done()) ReadPiece(bench, snapshot, read, &erased);
    }
    bench.table->Unwatch(&snapshot);
    hash -= changes.before;
    hash += HashOf(bench, read);
    REQUIRE(base.size() + read.size() - changes.rows_before == expected.size());
    for (const uint64_t p : erased) base.erase(p);
    for (const auto& [p, row] : read) base[p] = row;
    REQUIRE(base == expected);
    REQUIRE(hash == HashOf(bench, expected));
  }
}

TEST_CASE("a snapshot is the table at its beginning, whatever comes after", "[snapshot][seeds]") {
  const uint64_t seed = GENERATE(from_range(Seeds("table_snapshot")));
  const bool is_long = std::getenv("STRATA_LONG") != nullptr;
  for (uint64_t i = 0; i < (is_long ? 100 : 6); ++i) {
    for (const bool limited : {false, true}) {
      INFO("seed " << seed << " + " << i << ", limited " << limited);
      Bench bench(seed + i, 1024, limited);
      // Both ends, and crowds beside each other.
      bench.positions = {0, 1, ~uint64_t{0}, ~uint64_t{0} - 1};
      while (bench.positions.size() < 200) {
        const uint64_t p = bench.random();
        bench.positions.insert(bench.positions.end(), {p, p + 1});
      }
      for (int k = 0; k < 10; ++k) bench.Commit(60);
      Overlapping(bench);
      Increments(bench);
      // Rows that say they were touched after the clock, as those of another job's model do.
      std::vector<uint8_t> strange(bench.table->layout().row_bytes());
      const uint32_t late = 1000000;
      std::memcpy(strange.data() + bench.table->layout().meta_offset(), &late, sizeof late);
      REQUIRE(bench.table->Put(std::vector<Position>{Position(7)}, strange.data()).ok());
      bench.positions.push_back(7);
      REQUIRE_FALSE(bench.table->StepsTell(bench.step));
      Overlapping(bench);
    }
  }
}

TEST_CASE("a snapshot of an empty table, and of tiny rows", "[snapshot]") {
  Bench bench(3, 1, false);
  TableSnapshot empty(bench.Options());
  bench.table->Watch(&empty);
  bench.positions = {0, 5, ~uint64_t{0}};
  bench.Commit(3);
  bench.Commit(3);
  Rows read;
  while (!empty.done()) ReadPiece(bench, empty, read, nullptr);
  REQUIRE(read.empty());
  bench.table->Unwatch(&empty);
}

TEST_CASE("a list of changes that is too long is given up", "[snapshot]") {
  ChangeList list;
  list.Begin(5, 0);
  REQUIRE(list.IsFirst(5));
  REQUIRE_FALSE(list.IsFirst(6));
  for (uint64_t i = 0; i < ChangeList::kLeastLimit; ++i) list.Born(Position(i));
  REQUIRE(list.active());
  list.Born(Position(1));
  REQUIRE_FALSE(list.active());
  REQUIRE_FALSE(list.IsFirst(5));
}

}  // namespace
}  // namespace strata::server
