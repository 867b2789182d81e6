#include "storage/gpu/table.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/dram/table.h"
#include "storage/eviction/lrfu_score.h"
#include "storage/gpu/shape.h"
#include "storage/rocks/tier.h"
#include "storage/row/table.h"
#include "storage/row_file/tier.h"
#include "storage/tier/row_tier.h"
#include "storage/tiered/table.h"
#include "tests/skip.h"
#include "tests/storage/gpu/fixture.h"
#include "tests/storage/gpu/test_backend.h"
#include "tests/storage/row/table_conformance.h"
#include "tests/storage/tier/failing_tier.h"
#include "tests/temp_folder.h"

namespace strata::storage::gpu {
namespace {

ConformanceCase CaseOf(const GpuTableOptions& options) {
  ConformanceCase c;
  c.row_bytes = options.row_bytes;
  c.first = options.first;
  c.last = options.last;
  c.hbm_limit_bytes = options.hbm_limit_bytes;
  const auto shape = GpuShapeFor(options.hbm_limit_bytes, options.row_bytes, options.bucket_slots,
                                 options.eviction);
  if (!shape.ok()) FAIL(shape.status().ToString());
  c.most_pinned = shape->slots() / 2;
  return c;
}

TEST_CASE("a GPU table above DRAM does what the oracle says", "[storage][gpu]") {
  struct Shape {
    size_t row_bytes;
    uint32_t bucket_slots;
    uint64_t limit;  // 0: the least
    uint64_t operations;
    EvictionKind eviction = EvictionKind::kLrfu;
  };
  uint64_t seed = 10;
  for (const Shape& shape :
       {Shape{72, 64, 0, 100'000}, Shape{72, 32, 0, 100'000, EvictionKind::kLru},
        Shape{72, 128, 200'000, 200'000, EvictionKind::kLfu}, Shape{8, 64, 100'000, 600'000},
        Shape{72, 64, 200'000, 600'000, EvictionKind::kLru}, Shape{72, 64, 4'000'000, 200'000},
        Shape{3080, 64, 1'000'000, 30'000}}) {
    GpuTableOptions options{.row_bytes = shape.row_bytes, .bucket_slots = shape.bucket_slots};
    options.eviction = shape.eviction;
    options.hbm_limit_bytes =
        shape.limit == 0 ? MinimumHbmBytes(shape.row_bytes, shape.bucket_slots, shape.eviction)
                         : shape.limit;
    ConformanceCase c = CaseOf(options);
    c.make = [options] { return Make(options, MakeDramTable({.row_bytes = options.row_bytes})); };
    c.operations = BackendOperations(shape.operations);
    c.seed = seed++;
    CheckRefusals(c);
    CheckRandomOperations(c);
  }
}

// Three tiers, each far smaller than the one below. Calls of the lowest fail at times.
void CheckThreeTiers(absl::StatusOr<std::unique_ptr<RowTier>> real) {
  if (!real.ok()) FAIL(real.status().ToString());
  FailingTier tier(*std::move(real));
  uint32_t table = 0;
  for (const uint64_t dram : {MinimumDramBytes(72), uint64_t{100'000}}) {
    for (const EvictionKind kind : {EvictionKind::kLru, EvictionKind::kLfu, EvictionKind::kLrfu}) {
      const TieredOptions below{.table = TableId(table++),
                                .row_bytes = 72,
                                .first = Position(uint64_t{1} << 62),
                                .last = Position((uint64_t{3} << 62) - 1),
                                .dram_limit_bytes = dram,
                                .below = &tier,
                                .eviction = kind};
      GpuTableOptions options{.row_bytes = 72, .first = below.first, .last = below.last};
      options.hbm_limit_bytes = 50'000;
      options.eviction = kind;
      ConformanceCase c = CaseOf(options);
      c.limit_bytes = dram;
      c.make = [=] { return Make(options, Tiered(below)); };
      c.operations = BackendOperations(dram < 10'000 ? 10'000 : 60'000);
      c.seed = 100 + table;
      c.below = &tier;
      CheckRefusals(c);
      CheckRandomOperations(c);
    }
  }
  CHECK(tier.failed > 0);
  CHECK(tier.sorted);
}

TEST_CASE("a GPU table above DRAM above RocksDB does what the oracle says", "[storage][gpu]") {
  TempFolder folder;
  CheckThreeTiers(OpenRocksTier(
      {.directory = folder.path() + "/ssd", .partitions = 256, .memtable_bytes = 256 << 10}));
}

TEST_CASE("a GPU table above DRAM above a row file does what the oracle says", "[storage][gpu]") {
  TempFolder folder;
  CheckThreeTiers(OpenRowFileTier(
      {.directory = folder.path() + "/ssd", .partitions = 256, .memtable_bytes = 256 << 10}));
}

TEST_CASE("which rows leave depends on nothing but the calls", "[storage][gpu]") {
  for (const EvictionKind kind : {EvictionKind::kLru, EvictionKind::kLfu, EvictionKind::kLrfu}) {
    GpuTableOptions options{.row_bytes = kRowBytes, .hbm_limit_bytes = 400'000};
    options.eviction = kind;
    const auto one = Make(options, MakeDramTable({.row_bytes = kRowBytes}), 1);
    const auto team = Make(options, MakeDramTable({.row_bytes = kRowBytes}), 8);
    uint64_t random = 1;
    bool equal = true;
    const size_t batches = Operations(LongRun() ? 1000 : 100);
    for (size_t batch = 0; batch < batches; ++batch) {
      std::vector<Position> positions;
      for (uint64_t p = 0; positions.size() < one->max_batch();) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        p += 1 + (random >> 60);
        positions.push_back(Position(p * (batch % 3 + 1)));
      }
      const Access access = batch % 2 == 0 ? Access::kUpdate : Access::kRead;
      std::vector<RowSlot> slots(positions.size(), kNoRow), other = slots;
      std::vector<RowRef> refs(positions.size());
      REQUIRE(one->Resolve(positions, access, refs, slots).ok());
      for (const RowRef& r : refs) {
        if (r.created) std::memset(r.row, 1, kRowBytes);
      }
      REQUIRE(team->Resolve(positions, access, refs, other).ok());
      for (const RowRef& r : refs) {
        if (r.created) std::memset(r.row, 1, kRowBytes);
      }
      one->Release();
      team->Release();
      equal &= slots == other;
      equal &= one->counters().hbm_evicted == team->counters().hbm_evicted;
      equal &= one->counters().hbm_hits == team->counters().hbm_hits;
    }
    CHECK(equal);
    CHECK(one->counters().hbm_evicted > 20 * batches);
  }
}

TEST_CASE("references are counted once, by the tier that has the row", "[storage][gpu]") {
  TempFolder folder;
  auto tier = OpenRocksTier(
      {.directory = folder.path() + "/ssd", .partitions = 256, .memtable_bytes = 256 << 10});
  if (!tier.ok()) FAIL(tier.status().ToString());
  auto table = Make(OneBucket(), Tiered({.row_bytes = kRowBytes,
                                         .dram_limit_bytes = MinimumDramBytes(kRowBytes),
                                         .below = tier->get()}));
  const size_t batch = table->max_batch();
  uint64_t references = 0;
  const auto put = [&](uint64_t first) {
    REQUIRE(Put(*table, Range(first, batch), 1).ok());
    references += batch;
  };
  const auto sum = [&] {
    const TableCounters c = table->counters();
    return c.hbm_hits + c.hits + c.ssd_reads + c.absent;
  };
  for (uint64_t i = 0; i < 40; ++i) {
    put(i * 100);
    put(i / 3 * 100);
    CHECK(sum() == references);
  }
  const TableCounters c = table->counters();
  CHECK(c.absent == 40 * batch);
  CHECK(c.hbm_hits > 0);
  CHECK(c.hits > 0);
  CHECK(c.ssd_reads > 0);
  CHECK(c.hbm_rows == 32);
  CHECK(c.hbm_bytes == OneBucket().hbm_limit_bytes);
  // A read and the update after it are one reference; a right hint is none.
  std::vector<RowSlot> slots(batch, kNoRow);
  std::vector<RowRef> refs(batch);
  REQUIRE(table->Resolve(Range(3900, batch), Access::kRead, refs, slots).ok());
  table->Release();
  references += batch;
  CHECK(sum() == references);
  REQUIRE(table->Resolve(Range(3900, batch), Access::kUpdate, refs, slots).ok());
  table->Release();
  REQUIRE(table->Resolve(Range(3900, batch), Access::kUpdate, refs).ok());
  table->Release();
  CHECK(sum() == references);
}

// As a ticket's are, which many a Resolve has pinned.
TEST_CASE("pins of many batches end at once", "[storage][gpu]") {
  GpuTableOptions options{.row_bytes = kRowBytes, .hbm_limit_bytes = 1'000'000};
  auto table = Make(options, MakeDramTable({.row_bytes = kRowBytes}));
  constexpr size_t n = 100;
  const std::vector<Position> all = Range(0, 100 * n);
  std::vector<RowSlot> slots(all.size(), kNoRow);
  std::vector<RowRef> refs(n);
  size_t pinned = 0;
  for (size_t at = 0; at < all.size() && pinned == at; at += n) {
    const auto part = std::span(slots).subspan(at, n);
    REQUIRE(table->Resolve(std::span(all).subspan(at, n), Access::kUpdate, refs, part).ok());
    for (const RowRef& ref : refs) std::memset(ref.row, 1, kRowBytes);
    pinned += table->Pin(part);
    table->Release();
  }
  REQUIRE(pinned > 30 * n);
  REQUIRE(table->counters().pinned == pinned);
  // Once more, all of them.
  const auto again = std::span(slots).first(pinned);
  CHECK(table->Pin(again) == pinned);
  table->Unpin(std::span(all).first(pinned), again);
  CHECK(table->counters().pinned == pinned);
  table->Unpin(std::span(all).first(pinned), again);
  CHECK(table->counters().pinned == 0);
}

TEST_CASE("wrong options of a GPU table are refused", "[storage][gpu]") {
  const auto code = [](const GpuTableOptions& o, std::unique_ptr<RowTable> below) {
    return MakeGpuTable(o, std::move(below), BackendWith(1)).status().code();
  };
  const auto dram = [] { return MakeDramTable({.row_bytes = kRowBytes}); };
  CHECK(code(OneBucket(), dram()) == absl::StatusCode::kOk);
  CHECK(code(OneBucket(), nullptr) == absl::StatusCode::kInvalidArgument);
  GpuTableOptions options = OneBucket();
  options.hbm_limit_bytes -= 1;
  CHECK(code(options, dram()) == absl::StatusCode::kInvalidArgument);
  options = OneBucket();
  options.bucket_slots = 48;
  CHECK(code(options, dram()) == absl::StatusCode::kInvalidArgument);
  options = OneBucket();
  options.row_bytes = 42;
  CHECK(code(options, dram()) == absl::StatusCode::kInvalidArgument);
  options = OneBucket();
  options.first = Position(5);
  options.last = Position(4);
  CHECK(code(options, dram()) == absl::StatusCode::kInvalidArgument);
  const auto refused = MakeGpuTable(OneBucket(), dram(), BackendWith(1, 4096));
  CHECK(refused.status().code() == absl::StatusCode::kResourceExhausted);
}

TEST_CASE("a shape's bytes are what its header says", "[storage][gpu]") {
  for (const uint32_t bucket_slots : {32, 64, 128}) {
    for (const size_t row_bytes : {size_t{8}, size_t{72}, size_t{3080}}) {
      const uint64_t limit = uint64_t{1} << 26;
      const auto shape = GpuShapeFor(limit, row_bytes, bucket_slots, EvictionKind::kLrfu);
      REQUIRE(shape.ok());
      CHECK(shape->bytes() <= limit);
      CHECK(shape->bytes() + bucket_slots * (shape->stride() + 17) + 9 * 256 >= limit);
      const uint64_t formula =
          shape->slots() * (shape->stride() + 17) + shape->places * shape->stride() + 2 * kLrfuFar;
      CHECK(shape->bytes() >= formula);
      CHECK(shape->bytes() < formula + 9 * 256);
      CHECK(shape->places * shape->stride() <= limit / 16);
    }
  }
}

}  // namespace
}  // namespace strata::storage::gpu
