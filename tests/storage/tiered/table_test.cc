#include "storage/tiered/table.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "storage/eviction/kind.h"
#include "tests/storage/tier/failing_tier.h"
#include "tests/storage/tiered/tier_compositions.h"
#include "tests/temp_folder.h"

namespace strata::storage {
namespace {

std::unique_ptr<RowTier> OpenTier(const TierComposition& below, const std::string& directory,
                                  OpenMode mode) {
  auto tier = below.open(directory, mode);
  if (!tier.ok()) FAIL(tier.status().ToString());
  return *std::move(tier);
}

std::unique_ptr<RowTable> MakeTable(const TieredOptions& options) {
  auto table = MakeTieredTable(options);
  if (!table.ok()) FAIL(table.status().ToString());
  return *std::move(table);
}

// Puts `value` into every byte of the rows.
absl::Status Put(RowTable& table, std::span<const Position> positions, uint8_t value,
                 size_t row_bytes) {
  std::vector<RowRef> refs(positions.size());
  absl::Status s = table.Resolve(positions, Access::kUpdate, refs);
  if (!s.ok()) return s;
  for (const RowRef& ref : refs) std::memset(ref.row, value, row_bytes);
  table.Release();
  return absl::OkStatus();
}

std::vector<Position> Spaced(uint64_t first, uint64_t count) {
  std::vector<Position> out;
  for (uint64_t i = 0; i < count; ++i) out.push_back(Position((first + i) << 50));
  return out;
}

TEST_CASE("limits below the minimum and missing parts are refused", "[storage][tiered]") {
  const TierComposition below = GENERATE(from_range(TierCompositions()));
  INFO(below.name);
  TempFolder folder;
  auto tier = OpenTier(below, folder.path(), OpenMode::kFresh);
  const auto code = [](const TieredOptions& o) { return MakeTieredTable(o).status().code(); };
  TieredOptions options{.row_bytes = 72, .dram_limit_bytes = MinimumDramBytes(72) - 1};
  options.below = tier.get();
  CHECK(code(options) == absl::StatusCode::kInvalidArgument);
  options.dram_limit_bytes += 1;
  CHECK(code(options) == absl::StatusCode::kOk);
  CHECK(MakeTable(options)->max_batch() == kMinimumRows / 2);
  options.below = nullptr;
  CHECK(code(options) == absl::StatusCode::kInvalidArgument);
  options.below = tier.get();
  options.row_bytes = 70;
  CHECK(code(options) == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("a failed write below loses nothing and can be repeated", "[storage][tiered]") {
  const TierComposition below = GENERATE(from_range(TierCompositions()));
  INFO(below.name);
  TempFolder folder;
  FailingTier tier(OpenTier(below, folder.path(), OpenMode::kFresh));
  TieredOptions options{.row_bytes = 40, .dram_limit_bytes = 20'000, .below = &tier};
  auto table = MakeTable(options);
  const size_t batch = table->max_batch();
  REQUIRE(Put(*table, Spaced(0, batch), 1, 40).ok());
  REQUIRE(Put(*table, Spaced(batch, batch), 2, 40).ok());
  tier.writes_fail = true;
  const auto next = Spaced(2 * batch, batch);
  const TableCounters before = table->counters();
  CHECK(Put(*table, next, 3, 40).code() == absl::StatusCode::kResourceExhausted);
  CHECK(table->Flush().code() == absl::StatusCode::kResourceExhausted);
  CHECK(table->counters().rows == before.rows);
  CHECK(table->counters().dram_rows == before.dram_rows);
  CHECK(table->counters().evicted == before.evicted);
  // Rows in DRAM still answer, and can still change.
  REQUIRE(Put(*table, Spaced(0, batch), 4, 40).ok());
  tier.writes_fail = false;
  REQUIRE(Put(*table, next, 3, 40).ok());
  CHECK(tier.sorted);
  uint64_t rows = 0;
  bool right = true;
  REQUIRE(table
              ->Scan(Position(0), Position(~0ull),
                     [&](Position p, std::span<const uint8_t> row) {
                       const uint64_t group = (p.value >> 50) / batch;
                       right &= row[0] == (group == 0 ? 4 : group + 1) && row[39] == row[0];
                       ++rows;
                       return absl::OkStatus();
                     })
              .ok());
  CHECK(right);
  CHECK(rows == 3 * batch);
}

TEST_CASE("rows that a failed write may have left below are erased with the others",
          "[storage][tiered]") {
  const TierComposition below = GENERATE(from_range(TierCompositions()));
  INFO(below.name);
  TempFolder folder;
  FailingTier tier(OpenTier(below, folder.path(), OpenMode::kFresh));
  auto table = MakeTable({.row_bytes = 40, .dram_limit_bytes = 20'000, .below = &tier});
  const size_t batch = table->max_batch();
  REQUIRE(Put(*table, Spaced(0, batch), 1, 40).ok());
  tier.writes_fail = true;
  CHECK_FALSE(table->Flush().ok());  // half of them are below now
  tier.writes_fail = false;
  REQUIRE(table->Erase(Spaced(0, batch)).ok());
  CHECK(table->counters().rows == 0);
  for (uint64_t i = 1; i < 5; ++i) REQUIRE(Put(*table, Spaced(i * batch, batch), 2, 40).ok());
  std::vector<RowRef> refs(batch);
  REQUIRE(table->Resolve(Spaced(0, batch), Access::kRead, refs).ok());
  size_t found = 0;
  for (const RowRef& ref : refs) found += ref.row != nullptr;
  CHECK(found == 0);
  table->Release();
  CHECK(table->counters().rows == 4 * batch);
}

TEST_CASE("a failed read or delete below changes nothing", "[storage][tiered]") {
  const TierComposition below = GENERATE(from_range(TierCompositions()));
  INFO(below.name);
  TempFolder folder;
  FailingTier tier(OpenTier(below, folder.path(), OpenMode::kFresh));
  TieredOptions options{.row_bytes = 40, .dram_limit_bytes = 20'000, .below = &tier};
  auto table = MakeTable(options);
  const size_t batch = table->max_batch();
  for (uint64_t i = 0; i < 4; ++i) REQUIRE(Put(*table, Spaced(i * batch, batch), 1, 40).ok());
  const uint64_t rows = table->counters().rows;
  tier.reads_fail = true;
  std::vector<Position> all = Spaced(0, batch / 2);
  const auto absent = Spaced(9 * batch, 4);
  all.insert(all.end(), absent.begin(), absent.end());
  CHECK(Put(*table, all, 2, 40).code() == absl::StatusCode::kUnavailable);
  CHECK(table->counters().rows == rows);
  tier.reads_fail = false;
  tier.writes_fail = true;
  CHECK(table->Erase(Spaced(0, batch)).code() == absl::StatusCode::kResourceExhausted);
  CHECK(table->counters().rows == rows);
  tier.writes_fail = false;
  CHECK(table->Erase(Spaced(0, batch)).ok());
  CHECK(table->counters().rows == rows - batch);
}

TEST_CASE("flushed rows are there after a reopen, unless it is fresh", "[storage][tiered]") {
  const TierComposition below = GENERATE(from_range(TierCompositions()));
  INFO(below.name);
  TempFolder folder;
  TieredOptions options{.table = TableId(3), .row_bytes = 40, .dram_limit_bytes = 20'000};
  uint64_t rows = 0;
  {
    auto tier = OpenTier(below, folder.path(), OpenMode::kFresh);
    options.below = tier.get();
    auto table = MakeTable(options);
    const size_t batch = table->max_batch();
    for (uint64_t i = 0; i < 5; ++i) REQUIRE(Put(*table, Spaced(i * batch, batch), 7, 40).ok());
    rows = table->counters().rows;
    REQUIRE(table->Flush().ok());
    REQUIRE(tier->Sync().ok());
    CHECK(table->counters().rows == rows);
    CHECK(table->counters().written_back >= rows);
    const uint64_t written = table->counters().written_back;
    REQUIRE(table->Flush().ok());  // nothing is dirty any more
    CHECK(table->counters().written_back == written);
  }
  {
    auto tier = OpenTier(below, folder.path(), OpenMode::kKeep);
    options.below = tier.get();
    options.below_content = BelowContent::kAdopt;
    auto table = MakeTable(options);
    CHECK(table->counters().rows == rows);
    CHECK(table->counters().dram_rows == 0);
    std::vector<Position> first = {Position(0), Position(1)};
    std::vector<RowRef> refs(2);
    REQUIRE(table->Resolve(first, Access::kRead, refs).ok());
    REQUIRE(refs[0].row != nullptr);
    CHECK(refs[0].row[39] == 7);
    CHECK(refs[1].row == nullptr);
    CHECK(table->counters().ssd_reads == 1);
    table->Release();
  }
  auto tier = OpenTier(below, folder.path(), OpenMode::kFresh);
  options.below = tier.get();
  CHECK(MakeTable(options)->counters().rows == 0);
}

TEST_CASE("counters tell hits, reads, absences, evictions and write-backs", "[storage][tiered]") {
  const TierComposition below = GENERATE(from_range(TierCompositions()));
  INFO(below.name);
  TempFolder folder;
  auto tier = OpenTier(below, folder.path(), OpenMode::kFresh);
  auto table = MakeTable({.row_bytes = 40, .dram_limit_bytes = 20'000, .below = tier.get()});
  const size_t batch = table->max_batch();
  REQUIRE(Put(*table, Spaced(0, batch), 1, 40).ok());
  CHECK(table->counters().absent == batch);
  REQUIRE(Put(*table, Spaced(0, batch), 1, 40).ok());
  CHECK(table->counters().hits == batch);
  REQUIRE(Put(*table, Spaced(batch, batch), 1, 40).ok());
  CHECK(table->counters().evicted <= 1);
  REQUIRE(Put(*table, Spaced(2 * batch, batch), 1, 40).ok());
  const TableCounters full = table->counters();
  CHECK(full.rows == 3 * batch);
  CHECK(full.evicted >= batch - 1);
  CHECK(full.written_back >= full.evicted);  // all were dirty; a whole line is written at once
  CHECK(full.dram_rows == full.rows - full.evicted);
  // The batch that was used once left; reading it moves it up.
  std::vector<RowRef> refs(batch);
  REQUIRE(table->Resolve(Spaced(batch, batch), Access::kRead, refs).ok());
  table->Release();
  CHECK(table->counters().ssd_reads > 0);
  CHECK(table->counters().hits + table->counters().ssd_reads == 2 * batch);
}

// The rows at `positions` have `value` in every byte.
bool Holds(RowTable& table, std::span<const Position> positions, uint8_t value, size_t row_bytes) {
  std::vector<RowRef> refs(positions.size());
  REQUIRE(table.Resolve(positions, Access::kRead, refs).ok());
  bool right = true;
  for (const RowRef& ref : refs) {
    right &= ref.row != nullptr && ref.row[0] == value && ref.row[row_bytes - 1] == value;
  }
  table.Release();
  return right;
}

TEST_CASE("rows tidied ahead leave without a write", "[storage][tiered]") {
  const TierComposition below = GENERATE(from_range(TierCompositions()));
  INFO(below.name);
  TempFolder folder;
  FailingTier tier(OpenTier(below, folder.path(), OpenMode::kFresh));
  auto table = MakeTable({.row_bytes = 40, .dram_limit_bytes = 200'000, .below = &tier});
  const size_t batch = table->max_batch();
  const auto tidied = [&](size_t rows) {
    auto written = table->Tidy(rows);
    REQUIRE(written.ok());
    return *written;
  };
  REQUIRE(Put(*table, Spaced(0, batch), 1, 40).ok());
  CHECK(tidied(1000) == 0);  // there is room
  REQUIRE(Put(*table, Spaced(batch, batch), 2, 40).ok());
  CHECK(tidied(10) == 10);
  size_t line = 10;
  while (const size_t n = tidied(50)) line += n;
  CHECK(line == batch / 8);  // a sixteenth of the tier
  CHECK(table->counters().written_ahead == line);
  // As many rows as waited in line find room although nothing can be written.
  tier.writes_fail = true;
  REQUIRE(Put(*table, Spaced(2 * batch, line), 3, 40).ok());
  CHECK(Put(*table, Spaced(2 * batch + line, 2), 4, 40).code() ==
        absl::StatusCode::kResourceExhausted);
  CHECK_FALSE(table->Tidy(100).ok());
  tier.writes_fail = false;
  CHECK(tidied(5) == 5);
  CHECK(Holds(*table, Spaced(0, batch), 1, 40));
  CHECK(Holds(*table, Spaced(batch, batch), 2, 40));
  CHECK(Holds(*table, Spaced(2 * batch, line), 3, 40));
}

// Lrfu: what waits in line and is used again stays; a hint that is right counts as no use, and what
// it changed is written again.
TEST_CASE("rows in line that are used stay, and changed ones are written again",
          "[storage][tiered]") {
  const TierComposition below = GENERATE(from_range(TierCompositions()));
  INFO(below.name);
  TempFolder folder;
  auto tier = OpenTier(below, folder.path(), OpenMode::kFresh);
  auto table = MakeTable({.row_bytes = 40, .dram_limit_bytes = 200'000, .below = tier.get()});
  const size_t batch = table->max_batch();
  REQUIRE(Put(*table, Spaced(0, batch), 1, 40).ok());
  REQUIRE(Put(*table, Spaced(batch, batch), 1, 40).ok());
  const size_t line = batch / 8;
  std::vector<RowRef> refs(batch);
  std::vector<RowSlot> slots(batch, kNoRow);
  REQUIRE(table->Resolve(Spaced(0, batch), Access::kRead, refs, slots).ok());
  table->Release();
  // The line is of the second half of the tier now.
  while (table->Tidy(1000).value() > 0) continue;
  const uint64_t hits = table->counters().hits;
  REQUIRE(table->Resolve(Spaced(0, batch), Access::kUpdate, refs, slots).ok());
  for (size_t i = 0; i < batch; ++i) std::memset(refs[i].row, 5, 40);
  table->Release();
  CHECK(table->counters().hits == hits);  // the read was counted
  REQUIRE(Put(*table, Spaced(batch, batch), 6, 40).ok());
  REQUIRE(Put(*table, Spaced(2 * batch, batch), 7, 40).ok());
  CHECK(table->counters().evicted >= batch - line);
  CHECK(Holds(*table, Spaced(0, batch), 5, 40));
  CHECK(Holds(*table, Spaced(batch, batch), 6, 40));
  CHECK(Holds(*table, Spaced(2 * batch, batch), 7, 40));
}

TEST_CASE("a read and the update after it are one reference", "[storage][tiered]") {
  const TierComposition below = GENERATE(from_range(TierCompositions()));
  INFO(below.name);
  TempFolder folder;
  auto tier = OpenTier(below, folder.path(), OpenMode::kFresh);
  auto table = MakeTable({.row_bytes = 40, .dram_limit_bytes = 200'000, .below = tier.get()});
  const auto some = Spaced(0, 10);
  REQUIRE(Put(*table, some, 1, 40).ok());
  CHECK(table->counters().hits == 0);
  CHECK(Holds(*table, some, 1, 40));
  CHECK(table->counters().hits == 10);
  REQUIRE(Put(*table, some, 2, 40).ok());
  CHECK(table->counters().hits == 10);
  REQUIRE(Put(*table, some, 3, 40).ok());  // no read went before this one
  CHECK(table->counters().hits == 20);
}

}  // namespace
}  // namespace strata::storage
