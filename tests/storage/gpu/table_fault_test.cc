// What a GPU table does where rows wait, find no room, or cannot be written.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "storage/dram/table.h"
#include "storage/rocks/tier.h"
#include "storage/row/table.h"
#include "storage/tiered/table.h"
#include "tests/storage/gpu/fixture.h"
#include "tests/storage/tier/failing_tier.h"
#include "tests/temp_folder.h"

namespace strata::storage::gpu {
namespace {

TEST_CASE("a row missed again before its write-back lands comes from its staging place",
          "[storage][gpu]") {
  Below below;
  auto table = Make(OneBucket(), std::move(below.owned));
  REQUIRE(Put(*table, Range(0, 16), 1).ok());
  REQUIRE(Put(*table, Range(100, 16), 2).ok());
  REQUIRE(table->counters().hbm_rows == 32);
  // Eight dirty rows leave. Nothing was ever written below.
  REQUIRE(Put(*table, Range(200, 8), 3).ok());
  CHECK(table->counters().hbm_evicted == 8);
  CHECK(table->counters().hbm_written_back == 0);
  CHECK(below.table->counters().rows == 0);
  CHECK(table->counters().rows == 40);
  // They are there, and come back as they were; others leave for them.
  CHECK(Holds(*table, Range(0, 16), 1));
  CHECK(table->counters().hbm_evicted == 16);
  CHECK(table->counters().hbm_written_back == 0);
  CHECK(below.table->counters().hits == 0);
  CHECK(below.table->counters().absent == 40);  // looked for when they were created
  // What came back is dirty still: it leaves once more, and its place is written below at last.
  REQUIRE(Put(*table, Range(0, 4), 4).ok());
  REQUIRE(Put(*table, Range(300, 16), 5).ok());
  REQUIRE(Put(*table, Range(400, 16), 6).ok());
  REQUIRE(table->Flush().ok());
  CHECK(below.table->counters().rows == 72);
  CHECK(Holds(*below.table, Range(0, 4), 4));
  CHECK(Holds(*below.table, Range(4, 12), 1));
  CHECK(Holds(*below.table, Range(100, 16), 2));
  CHECK(Holds(*table, Range(0, 4), 4));
}

TEST_CASE("a bucket whose rows are all pinned has others served below", "[storage][gpu]") {
  Below below;
  // Pins hold half of the table, so all of one bucket of two.
  auto table = Make(WithBuckets(2), std::move(below.owned));
  const std::vector<Position> full = OfFirstBucket(48);
  REQUIRE(table->max_batch() == 32);
  const auto pinned = std::span<const Position>(full).first(32);
  const auto crowded = std::span<const Position>(full).subspan(32);
  std::vector<RowSlot> slots(32, kNoRow);
  std::vector<RowRef> refs(32);
  REQUIRE(table->Resolve(pinned, Access::kUpdate, refs, slots).ok());
  for (const RowRef& ref : refs) std::memset(ref.row, 1, kRowBytes);
  REQUIRE(table->Pin(slots) == 32);
  table->Release();
  // Born below, read and updated there; HBM keeps what it has.
  REQUIRE(Put(*table, crowded, 2).ok());
  CHECK(below.table->counters().rows == crowded.size());
  CHECK(Holds(*table, crowded, 2));
  CHECK(Holds(*table, pinned, 1));
  REQUIRE(Put(*table, crowded, 3).ok());
  CHECK(Holds(*table, crowded, 3));
  CHECK(Holds(*below.table, crowded, 3));
  CHECK(table->counters().hbm_rows == 32);
  CHECK(table->counters().hbm_evicted == 0);
  CHECK(table->counters().rows == 48);
  // Pin ends at a row that is not in HBM; the hint for it is wrong, and harmless.
  std::vector<RowSlot> hints(crowded.size(), kNoRow);
  refs.resize(crowded.size());
  REQUIRE(table->Resolve(crowded, Access::kRead, refs, hints).ok());
  CHECK(hints[0] != kNoRow);
  CHECK(table->Pin(hints) == 0);
  table->Release();
  REQUIRE(table->Resolve(crowded, Access::kRead, refs, hints).ok());
  CHECK(refs[0].row[0] == 3);
  table->Release();
  table->Unpin(pinned, slots);
  CHECK(Holds(*table, crowded, 3));
  CHECK(table->counters().hbm_evicted == crowded.size());
}

TEST_CASE("a row that waits is served although its bucket is full of pinned rows",
          "[storage][gpu]") {
  Below below;
  auto table = Make(WithBuckets(2), std::move(below.owned));
  const std::vector<Position> all = OfFirstBucket(36);
  const auto waiting = std::span<const Position>(all).first(4);
  const auto pinned = std::span<const Position>(all).last(32);
  REQUIRE(Put(*table, std::span<const Position>(all).first(32), 1).ok());
  REQUIRE(Put(*table, std::span<const Position>(all).last(4), 2).ok());
  std::vector<RowSlot> slots(32, kNoRow);
  std::vector<RowRef> refs(32);
  REQUIRE(table->Resolve(pinned, Access::kRead, refs, slots).ok());
  REQUIRE(table->Pin(slots) == 32);
  table->Release();
  REQUIRE(table->counters().hbm_evicted == 4);
  // A read sees what waits; an update has it written below, and is made there.
  CHECK(Holds(*table, waiting, 1));
  CHECK(table->counters().hbm_written_back == 0);
  CHECK(below.table->counters().rows == 0);
  REQUIRE(Put(*table, waiting.first(2), 3).ok());
  CHECK(table->counters().hbm_written_back == 4);
  CHECK(below.table->counters().rows == 4);
  CHECK(Holds(*table, waiting.first(2), 3));
  CHECK(Holds(*table, waiting.last(2), 1));
  table->Unpin(pinned, slots);
  CHECK(Holds(*table, waiting.first(2), 3));
  CHECK(Holds(*table, pinned.first(28), 1));
  CHECK(table->counters().rows == 36);
}

TEST_CASE("a failed write-back loses nothing and can be repeated", "[storage][gpu]") {
  TempFolder folder;
  auto real = OpenRocksTier(
      {.directory = folder.path() + "/ssd", .partitions = 256, .memtable_bytes = 256 << 10});
  if (!real.ok()) FAIL(real.status().ToString());
  FailingTier tier(*std::move(real));
  auto below = Tiered(
      {.row_bytes = kRowBytes, .dram_limit_bytes = MinimumDramBytes(kRowBytes), .below = &tier});
  auto table = Make(OneBucket(), std::move(below));
  const size_t batch = table->max_batch();
  REQUIRE(batch == 8);
  uint8_t value = 1;
  for (; value <= 7; ++value) REQUIRE(Put(*table, Range(value * 100, batch), value).ok());
  tier.writes_fail = true;
  const auto rows_of = [&](uint8_t v) { return Range(v * 100u, batch); };
  // Rows leave until places and DRAM are full; then calls fail, and create nothing.
  uint64_t rows = table->counters().rows;
  absl::Status s;
  for (; value < 30; ++value) {
    s = Put(*table, rows_of(value), value);
    if (!s.ok()) break;
    rows += batch;
  }
  REQUIRE(s.code() == absl::StatusCode::kResourceExhausted);
  CHECK(table->counters().rows == rows);
  CHECK(table->Flush().code() == absl::StatusCode::kResourceExhausted);
  CHECK(table->counters().rows == rows);
  CHECK(Put(*table, rows_of(value), value).code() == absl::StatusCode::kResourceExhausted);
  CHECK(table->counters().rows == rows);
  // Rows in HBM still answer.
  const uint64_t hits = table->counters().hbm_hits;
  CHECK(Holds(*table, rows_of(value - 1), value - 1));
  CHECK(table->counters().hbm_hits == hits + batch);
  tier.writes_fail = false;
  REQUIRE(Put(*table, rows_of(value), value).ok());
  CHECK(tier.sorted);
  CHECK(table->counters().rows == rows + batch);
  uint8_t next = 1;
  uint64_t seen = 0;
  bool right = true;
  REQUIRE(table
              ->Scan(Position(0), Position(~0ull),
                     [&](Position p, std::span<const uint8_t> row) {
                       next = static_cast<uint8_t>(1 + seen / batch);
                       right &= p.value == next * 100u + seen % batch;
                       right &= row[0] == next && row[kRowBytes - 1] == next;
                       ++seen;
                       return absl::OkStatus();
                     })
              .ok());
  CHECK(right);
  CHECK(seen == value * batch);
}

TEST_CASE("a failed read or removal below changes nothing in a GPU table", "[storage][gpu]") {
  TempFolder folder;
  auto real = OpenRocksTier(
      {.directory = folder.path() + "/ssd", .partitions = 256, .memtable_bytes = 256 << 10});
  if (!real.ok()) FAIL(real.status().ToString());
  FailingTier tier(*std::move(real));
  auto table = Make(OneBucket(), Tiered({.row_bytes = kRowBytes,
                                         .dram_limit_bytes = MinimumDramBytes(kRowBytes),
                                         .below = &tier}));
  const size_t batch = table->max_batch();
  for (uint8_t v = 1; v <= 20; ++v) REQUIRE(Put(*table, Range(v * 100, batch), v).ok());
  REQUIRE(table->Flush().ok());
  const uint64_t rows = table->counters().rows;
  tier.reads_fail = true;
  std::vector<Position> all = Range(104, 4);
  for (const Position p : Range(5000, 4)) all.push_back(p);
  CHECK(Put(*table, all, 9).code() == absl::StatusCode::kUnavailable);
  CHECK(table->counters().rows == rows);
  tier.reads_fail = false;
  tier.writes_fail = true;
  CHECK(table->Erase(Range(100, batch)).code() == absl::StatusCode::kResourceExhausted);
  CHECK(table->counters().rows == rows);
  tier.writes_fail = false;
  CHECK(Holds(*table, Range(100, batch), 1));
  CHECK(table->Erase(Range(100, batch)).ok());
  CHECK(table->counters().rows == rows - batch);
  REQUIRE(Put(*table, all, 9).ok());
  CHECK(table->counters().rows == rows - batch + 8);
}

TEST_CASE("rows that a failed call was to replace are as they were", "[storage][gpu]") {
  TempFolder folder;
  auto real = OpenRocksTier(
      {.directory = folder.path() + "/ssd", .partitions = 256, .memtable_bytes = 256 << 10});
  if (!real.ok()) FAIL(real.status().ToString());
  FailingTier tier(*std::move(real));
  auto table = Make(WithBuckets(2), Tiered({.row_bytes = kRowBytes,
                                            .dram_limit_bytes = MinimumDramBytes(kRowBytes),
                                            .below = &tier}));
  const std::vector<Position> full = OfBucket(0, 33);
  const std::vector<Position> other = OfBucket(1, 1000);
  // The last row of one bucket and the first of the other are below alone.
  REQUIRE(Put(*table, std::span(full).last(1), 1).ok());
  REQUIRE(Put(*table, std::span(other).first(1), 1).ok());
  REQUIRE(table->Flush().ok());
  for (size_t i = 0; i < 32; ++i) {
    RowRef ref;
    RowSlot slot = kNoRow;
    REQUIRE(table->Resolve({&full[i], 1}, Access::kUpdate, {&ref, 1}, {&slot, 1}).ok());
    std::memset(ref.row, 2, kRowBytes);
    REQUIRE(table->Pin({&slot, 1}) == 1);
    table->Release();
  }
  size_t at = 1;
  for (; at < 100; ++at) REQUIRE(Put(*table, std::span(other).subspan(at, 1), 3).ok());
  // Now no row finds room in DRAM, but some do in HBM.
  tier.writes_fail = true;
  for (; at < 1000 && Put(*table, std::span(other).subspan(at, 1), 3).ok(); ++at) continue;
  tier.writes_fail = false;
  REQUIRE(table->Tidy(4).ok());
  tier.writes_fail = true;
  for (int i = 0; i < 1000 && table->Tidy(1).ok(); ++i) continue;
  std::vector<Position> both = {full[32], other[0]};
  std::sort(both.begin(), both.end());
  const uint64_t rows = table->counters().rows;
  const uint64_t evicted = table->counters().hbm_evicted;
  std::vector<RowRef> refs(2);
  CHECK(table->Resolve(both, Access::kReplace, refs).code() ==
        absl::StatusCode::kResourceExhausted);
  CHECK(table->counters().hbm_evicted == evicted + 1);  // for the one that had got a slot
  tier.writes_fail = false;
  CHECK(Holds(*table, both, 1));
  CHECK(table->counters().rows == rows);
}

TEST_CASE("a DRAM table that is full refuses rows that leave HBM, with bytes", "[storage][gpu]") {
  DramTableOptions dram{.row_bytes = kRowBytes, .limit_bytes = 4096 * 3};
  auto table = Make(OneBucket(), MakeDramTable(dram));
  absl::Status s;
  uint8_t value = 0;
  uint64_t rows = 0;
  for (; s.ok() && value < 100; ++value) {
    s = Put(*table, Range(value * 100, 16), value);
    if (s.ok()) rows += 16;
  }
  REQUIRE(s.code() == absl::StatusCode::kResourceExhausted);
  CHECK(std::string(s.message()).find("bytes are free") != std::string::npos);
  CHECK(table->counters().rows == rows);
  // Every row can still be read.
  for (uint8_t v = 0; v + 1 < value; ++v) CHECK(Holds(*table, Range(v * 100, 16), v));
}

TEST_CASE("rows tidied ahead leave HBM without a write", "[storage][gpu]") {
  Below below;
  auto table = Make(OneBucket(), std::move(below.owned));
  REQUIRE(Put(*table, Range(0, 16), 1).ok());
  CHECK(*table->Tidy(100) == 0);  // there is room
  REQUIRE(Put(*table, Range(100, 16), 2).ok());
  CHECK(*table->Tidy(1) == 1);
  CHECK(*table->Tidy(100) == 1);  // two of 32 are next to leave
  CHECK(*table->Tidy(100) == 0);
  CHECK(table->counters().hbm_written_back == 2);
  CHECK(table->counters().hbm_rows == 32);
  CHECK(below.table->counters().rows == 2);
  REQUIRE(Put(*table, Range(200, 3), 3).ok());
  CHECK(table->counters().hbm_evicted == 3);
  CHECK(table->counters().hbm_written_back == 2);
  CHECK(*table->Tidy(100) == 1);  // the third waits
  CHECK(Holds(*below.table, Range(0, 3), 1));
  CHECK(table->counters().rows == 35);
}

}  // namespace
}  // namespace strata::storage::gpu
