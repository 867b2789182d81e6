// What storage does while the system refuses memory for rows, index and log.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/failpoints.h"
#include "storage/dram/table.h"
#include "storage/log/update_log.h"
#include "storage/row/table.h"
#include "storage/row_file/tier.h"
#include "storage/tiered/options.h"
#include "storage/tiered/table.h"
#include "tests/storage/log/fixture.h"
#include "tests/storage/row/table_conformance.h"
#include "tests/temp_folder.h"

namespace strata::storage {
namespace {

// While one is there, no memory is.
class NoMemory {
 public:
  NoMemory()
      : point_("huge_memory.allocate", {.act = FailWith(absl::ResourceExhaustedError("none"))}) {}

 private:
  const ScopedFailpoint point_;
};

TEST_CASE("a DRAM table that is refused memory keeps its rows and goes on", "[storage][memory]") {
  for (const Spread spread : {Spread::kUniform, Spread::kClustered}) {
    // An index that grows through many sizes.
    ConformanceCase c;
    c.row_bytes = 12;
    c.make = [spread] { return MakeDramTable({.row_bytes = 12, .spread = spread}); };
    c.positions = 60'000;
    c.operations = 150'000;
    CHECK(CheckMemoryShortage(c) >= 4);
    // Four slabs of rows.
    c.row_bytes = (64 << 10) + 8;
    c.make = [spread] { return MakeDramTable({.row_bytes = (64 << 10) + 8, .spread = spread}); };
    c.positions = 1'000;
    c.operations = 3'000;
    CHECK(CheckMemoryShortage(c) >= 3);
  }
}

TEST_CASE("a tiered table that is refused memory keeps its rows and goes on", "[storage][memory]") {
  TempFolder folder;
  auto tier = OpenRowFileTier({.directory = folder.path() + "/ssd", .partitions = 256});
  REQUIRE(tier.ok());
  constexpr size_t kRowBytes = (32 << 10) + 8;
  uint32_t tables = 0;
  for (const Spread spread : {Spread::kUniform, Spread::kClustered}) {
    TieredOptions options{.table = TableId(tables++),
                          .row_bytes = kRowBytes,
                          .spread = spread,
                          .dram_limit_bytes = uint64_t{40} << 20,  // three slabs
                          .below = tier->get()};
    ConformanceCase c;
    c.row_bytes = kRowBytes;
    c.limit_bytes = options.dram_limit_bytes;
    c.make = [&] {
      auto table = MakeTieredTable(options);
      REQUIRE(table.ok());
      return *std::move(table);
    };
    c.positions = 1'500;
    c.operations = 6'000;
    CHECK(CheckMemoryShortage(c) >= 3);
  }
}

TEST_CASE("a tiered table reads from below as soon as it gets memory", "[storage][memory]") {
  TempFolder folder;
  auto tier = OpenRowFileTier({.directory = folder.path() + "/ssd", .partitions = 256});
  REQUIRE(tier.ok());
  TieredOptions options{.table = TableId(0),
                        .row_bytes = 16,
                        .dram_limit_bytes = uint64_t{1} << 20,
                        .below = tier->get()};
  const std::vector<Position> positions = {Position(1), Position(uint64_t{1} << 40)};
  std::vector<RowRef> refs(2);
  {
    auto table = MakeTieredTable(options);
    REQUIRE(table.ok());
    REQUIRE((*table)->Resolve(positions, Access::kUpdate, refs).ok());
    for (const RowRef& ref : refs) std::fill_n(ref.row, 16, uint8_t{5});
    (*table)->Release();
    REQUIRE((*table)->Flush().ok());
  }
  options.below_content = BelowContent::kAdopt;
  auto table = MakeTieredTable(options);
  REQUIRE(table.ok());
  {
    const NoMemory none;
    for (int i = 0; i < 3; ++i) {
      CHECK(absl::IsResourceExhausted((*table)->Resolve(positions, Access::kRead, refs)));
    }
    CHECK((*table)->counters().rows == 2);
  }
  REQUIRE((*table)->Resolve(positions, Access::kRead, refs).ok());
  for (const RowRef& ref : refs) {
    REQUIRE(ref.row != nullptr);
    CHECK(std::vector<uint8_t>(ref.row, ref.row + 16) == std::vector<uint8_t>(16, 5));
  }
}

TEST_CASE("a log that is refused memory loses no record, and says no word of damage",
          "[storage][memory]") {
  TempFolder folder;
  for (const uint64_t direct_from : {uint64_t{0}, uint64_t{1} << 40}) {
    CAPTURE(direct_from);
    UpdateLogOptions options;
    options.directory = folder.path() + "/" + std::to_string(direct_from);
    options.direct_from_bytes = direct_from;
    auto log = MustOpen(options);
    std::vector<KeptRecord> kept;
    for (uint64_t n = 0; n < 8; ++n) {
      std::optional<NoMemory> none;
      if (n % 2 == 0) none.emplace();
      const KeptRecord record = RecordOf(n, 3000);
      // Around the page cache records are copied to where the device can read them from.
      const absl::Status s = Append(*log, record).status();
      INFO(s);
      if (s.ok()) {
        kept.push_back(record);
      } else {
        CHECK(none.has_value());
        CHECK(absl::IsResourceExhausted(s));
      }
    }
    CHECK(kept.size() >= 4);
    log.reset();
    {
      const NoMemory none;
      std::vector<KeptRecord> out;
      const auto opened = UpdateLog::Open(options);
      const absl::Status s = opened.ok() ? ReadAll(**opened, 0, out) : opened.status();
      INFO(s);
      CHECK(absl::IsResourceExhausted(s));
    }
    CHECK(MustReadAll(*MustOpen(options)) == kept);
  }
}

}  // namespace
}  // namespace strata::storage
