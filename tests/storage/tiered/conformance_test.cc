// Tiered tables over every SSD tier against a model: what is read and updated, hints, pins,
// removals, scans, and calls of the tier that fail.
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "storage/eviction/kind.h"
#include "storage/tier/row_tier.h"
#include "storage/tier/watched_tier.h"
#include "storage/tiered/options.h"
#include "storage/tiered/table.h"
#include "tests/seed.h"
#include "tests/skip.h"
#include "tests/storage/row/table_conformance.h"
#include "tests/storage/tier/failing_tier.h"
#include "tests/storage/tiered/tier_compositions.h"
#include "tests/temp_folder.h"

namespace strata::storage {
namespace {

// A tier whose calls fail on demand, and what a table has below it.
struct Below {
  std::unique_ptr<FailingTier> failing;
  std::unique_ptr<WatchedTier> watched;  // then it owns the other
  FailingTier* to_fail = nullptr;
  RowTier* tier() const {
    return watched != nullptr ? static_cast<RowTier*>(watched.get()) : failing.get();
  }
};

Below Open(const TierComposition& composition, const std::string& directory) {
  auto real = composition.open(directory, OpenMode::kFresh);
  INFO(real.status().ToString());
  REQUIRE(real.ok());
  Below below;
  below.failing = std::make_unique<FailingTier>(*std::move(real));
  below.to_fail = below.failing.get();
  if (composition.watched) {
    below.watched = std::make_unique<WatchedTier>(std::move(below.failing));
  }
  return below;
}

struct Shape {
  size_t row_bytes;
  uint64_t limit;
  uint64_t operations;
  EvictionKind eviction = EvictionKind::kLrfu;
  size_t positions = 4000;
};

constexpr size_t kLargeRow = 4096 * 4 + 8;  // 4096 floats and metadata

// Plays each shape on a table of its own.
void CheckShapes(const TierComposition& composition, Spread spread,
                 const std::vector<Shape>& shapes, uint64_t seed) {
  TempFolder folder;
  const Below below = Open(composition, folder.path() + "/ssd");
  INFO(composition.name << ", seed " << seed);
  uint32_t table = 0;
  for (const Shape& shape : shapes) {
    TieredOptions options{.table = TableId(table++),
                          .row_bytes = shape.row_bytes,
                          .spread = spread,
                          .dram_limit_bytes = shape.limit,
                          .below = below.tier(),
                          .eviction = shape.eviction};
    ConformanceCase c;
    c.row_bytes = shape.row_bytes;
    c.make = [options] {
      auto made = MakeTieredTable(options);
      if (!made.ok()) FAIL(made.status().ToString());
      return *std::move(made);
    };
    c.limit_bytes = shape.limit;
    c.positions = shape.positions;
    c.operations = LongRun() ? 10 * shape.operations : shape.operations;
    if (SeedsAreGiven()) c.operations = shape.operations / 10;
    c.seed = seed + table;
    c.below = below.to_fail;
    CheckRefusals(c);
    CheckRandomOperations(c);
  }
  // Few operations may not meet a call that fails.
  if (Operations(100) == 100 && !SeedsAreGiven()) CHECK(below.to_fail->failed > 0);
  CHECK(below.to_fail->sorted);
  if (below.watched != nullptr) CHECK(below.watched->damage().ok());
}

TEST_CASE("a tiered table over servers' default does what the oracle says",
          "[storage][tiered][seeds]") {
  const uint64_t seed = GENERATE(from_range(Seeds("tiered_default")));
  CheckShapes(TierCompositions().front(), Spread::kUniform,
              {{72, 100'000, 1'000'000},
               {72, 100'000, 250'000, EvictionKind::kLru},
               {72, 100'000, 250'000, EvictionKind::kLfu},
               {kLargeRow, uint64_t{2} << 20, 5'000, EvictionKind::kLrfu, 400}},
              seed);
}

TEST_CASE("tiered tables over each tier do what the oracle says, at every limit",
          "[storage][tiered][seeds]") {
  const uint64_t seed = GENERATE(from_range(Seeds("tiered_limits")));
  for (const TierComposition& composition : TierCompositions()) {
    for (const Spread spread : {Spread::kUniform, Spread::kClustered}) {
      CheckShapes(composition, spread,
                  {{72, MinimumDramBytes(72), 10'000},
                   {72, 100'000, 60'000},
                   {72, 100'000, 30'000, EvictionKind::kLru},
                   {72, 100'000, 30'000, EvictionKind::kLfu},
                   {3080, uint64_t{1} << 20, 10'000},
                   {8, uint64_t{1} << 20, 40'000},
                   {kLargeRow, uint64_t{2} << 20, 1'000, EvictionKind::kLrfu, 400}},
                  seed);
    }
  }
}

TEST_CASE("shards share a tier and do not see each other's rows", "[storage][tiered][seeds]") {
  const uint64_t seed = GENERATE(from_range(Seeds("tiered_shards")));
  for (const TierComposition& composition : TierCompositions()) {
    INFO(composition.name);
    TempFolder folder;
    const Below below = Open(composition, folder.path());
    // Two shards of one table, cut inside the range that the conformance positions use.
    const Position cut((uint64_t{100} << 56) - 1);
    for (int shard = 0; shard < 2; ++shard) {
      TieredOptions options{.row_bytes = 40, .dram_limit_bytes = 20'000, .below = below.tier()};
      (shard == 0 ? options.last : options.first) = shard == 0 ? cut : cut.Next();
      ConformanceCase c{.row_bytes = 40, .first = options.first, .last = options.last};
      c.make = [options] { return *MakeTieredTable(options); };
      c.limit_bytes = options.dram_limit_bytes;
      c.operations = 30'000;
      c.seed = seed;
      CheckRandomOperations(c);
    }
  }
}

TEST_CASE("without a limit a tiered table is a DRAM table", "[storage][tiered][seeds]") {
  ConformanceCase c;
  c.row_bytes = 24;
  c.make = [] { return *MakeTieredTable({.row_bytes = 24}); };
  c.operations = 100'000;
  c.seed = GENERATE(from_range(Seeds("tiered_unlimited")));
  CheckRandomOperations(c);
}

}  // namespace
}  // namespace strata::storage
