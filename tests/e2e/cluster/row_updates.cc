#include "tests/e2e/cluster/row_updates.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <span>

#include "storage/checkpoint/shard_file.h"

namespace strata::testing {

std::map<Position, uint32_t> RowUpdates(const std::string& folder, TableId table) {
  std::map<Position, uint32_t> updates;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename() == "MANIFEST.json") continue;
    auto reader = storage::ShardFileReader::Open(entry.path());
    REQUIRE(reader.ok());
    const storage::ShardFileHeader& header = (*reader)->header();
    size_t row_bytes = 0;
    for (const storage::TableShape& t : header.tables) {
      if (t.id == table) row_bytes = t.row_bytes();
    }
    const absl::Status s = (*reader)->ReadRows(
        table, header.partitions, [&](std::span<const Position> positions, const uint8_t* rows) {
          for (size_t i = 0; i < positions.size(); ++i) {
            uint32_t count = 0;  // RowMeta.updates: the row's last four bytes
            std::memcpy(&count, rows + (i + 1) * row_bytes - 4, 4);
            CHECK(updates.emplace(positions[i], count).second);
          }
          return absl::OkStatus();
        });
    REQUIRE(s.ok());
  }
  return updates;
}

}  // namespace strata::testing
