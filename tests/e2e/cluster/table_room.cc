#include "tests/e2e/cluster/table_room.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "proto/core/table_spec.h"
#include "proto/job/checks/byte_size.h"
#include "storage/dram/store.h"
#include "tools/cluster/checkpoint/rows.h"

namespace strata::testing {

TableRoom RoomOf(const std::string& checkpoint, const std::string& table, const JobSpec& spec) {
  const auto limit = ParseBytes(spec.storage().dram_bytes_per_server());
  REQUIRE(limit.ok());
  REQUIRE(*limit > 0);
  const auto opened = CheckpointRows::Open(checkpoint);
  INFO(opened.status());
  REQUIRE(opened.ok());
  const std::vector<TableSpec>& tables = opened->tables().tables;
  const auto hashed =
      static_cast<uint64_t>(std::count_if(tables.begin(), tables.end(), [](const TableSpec& t) {
        return t.kind == TableKind::kHashed;
      }));
  const auto found = std::find_if(tables.begin(), tables.end(),
                                  [&](const TableSpec& t) { return t.name == table; });
  REQUIRE(found != tables.end());
  const auto number = static_cast<uint32_t>(found - tables.begin());
  // Hashed tables share what dense ones leave of a shard's part.
  const uint64_t shards = spec.storage().shards_per_server();
  storage::RowStoreOptions options;
  options.row_bytes = opened->layout(number).row_bytes();
  options.limit_bytes = *limit / shards / hashed;
  const uint64_t servers = std::max(1u, spec.replicas().servers());
  return {.rows = opened->rows(number),
          .most_in_dram = servers * shards * storage::RowStore::CapacityFor(options)};
}

}  // namespace strata::testing
