#include "server/table/gpu_memory.h"

#include <catch2/catch.hpp>
#include <string>

#include "storage/eviction/kind.h"
#include "storage/gpu/shape.h"
#include "storage/row/layout.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::server {
namespace {

constexpr auto kLrfu = storage::EvictionKind::kLrfu;

// Two hashed tables, of short and of long rows, and a dense one.
std::vector<TableSpec> Tables() {
  std::vector<TableSpec> tables = TestTables();
  TableSpec wide = tables[0];
  wide.id = TableId(2);
  wide.name = "wide";
  wide.segments[0].dim = 200;
  tables.push_back(wide);
  return tables;
}

uint64_t RowBytes(const TableSpec& t) { return storage::RowLayout::For(t).row_bytes(); }

TEST_CASE("hashed tables share a shard's HBM so that each has as many rows", "[gpu_memory]") {
  const auto tables = Tables();
  for (const uint64_t bytes : {uint64_t{1} << 20, uint64_t{777'777'777}, uint64_t{1} << 50}) {
    const auto limits = DivideHbm(tables, kLrfu, bytes, 4);
    REQUIRE(limits.ok());
    REQUIRE(limits->size() == 3);
    CHECK((*limits)[1] == 0);  // dense
    const uint64_t given = (*limits)[0] + (*limits)[2];
    CHECK(given <= bytes);
    CHECK(given + 2 >= bytes);
    if (bytes >> 40 != 0) continue;  // more slots than a table has numbers for
    const auto narrow =
        storage::gpu::GpuShapeFor((*limits)[0], RowBytes(tables[0]), kGpuBucketSlots, kLrfu);
    const auto wide =
        storage::gpu::GpuShapeFor((*limits)[2], RowBytes(tables[2]), kGpuBucketSlots, kLrfu);
    REQUIRE(narrow.ok());
    REQUIRE(wide.ok());
    const double ratio = static_cast<double>(narrow->slots()) / static_cast<double>(wide->slots());
    CHECK(ratio > 0.7);
    CHECK(ratio < 1.5);
  }
}

TEST_CASE("the least HBM is admitted, and a byte less is refused by name", "[gpu_memory]") {
  const auto tables = Tables();
  for (const uint32_t shards : {1u, 4u}) {
    const uint64_t least = LeastGpuBytesPerServer(tables, kLrfu, shards);
    CHECK(DivideHbm(tables, kLrfu, least / shards, shards).ok());
    const auto refused = DivideHbm(tables, kLrfu, least / shards - 1, shards);
    CHECK(refused.status().code() == absl::StatusCode::kFailedPrecondition);
    const std::string text(refused.status().message());
    INFO(text);
    CHECK(text.find("spec.storage.gpuBytesPerServer") != std::string::npos);
    CHECK(text.find("at least " + std::to_string(least)) != std::string::npos);
    CHECK(text.find("table \"features\"") != std::string::npos);
  }
  CHECK(DivideHbm(tables, kLrfu, 0, 1).status().code() == absl::StatusCode::kFailedPrecondition);
}

TEST_CASE("a job of dense tables alone has nothing in HBM", "[gpu_memory]") {
  const std::vector<TableSpec> dense = {TestTables()[1]};
  const auto limits = DivideHbm(dense, kLrfu, 1000, 1);
  REQUIRE(limits.ok());
  CHECK(*limits == std::vector<uint64_t>{0});
}

}  // namespace
}  // namespace strata::server
