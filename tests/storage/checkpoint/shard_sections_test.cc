// Small state in a shard's file, read by its type.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "proto/core/partition.h"
#include "storage/checkpoint/shard_file.h"
#include "tests/storage/checkpoint/shard_content.h"
#include "tests/storage/io/file_bytes.h"
#include "tests/temp_folder.h"

namespace strata::storage {
namespace {

// Lengths of the sections of that type.
absl::Status ReadLengths(const std::string& path, uint32_t type, PartitionRange partitions,
                         std::vector<size_t>& out) {
  out.clear();
  const auto reader = ShardFileReader::Open(path);
  if (!reader.ok()) return reader.status();
  return (*reader)->ReadSectionsOf(type, partitions, [&](const Section& section) {
    CHECK(section.type == type);
    out.push_back(section.bytes.size());
    return absl::OkStatus();
  });
}

TEST_CASE("sections of one type are read, and no others", "[storage][shard_file]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/f";
  Content content = MakeContent(10, 1);
  content.sections.emplace_back(3, 4, 11, Bytes(1000, 0x33));
  REQUIRE(WriteContent(path, content).ok());
  const PartitionRange all = ContentHeader().partitions;
  std::vector<size_t> lengths;
  REQUIRE(ReadLengths(path, 1, all, lengths).ok());
  CHECK(lengths == std::vector<size_t>{13});
  REQUIRE(ReadLengths(path, 2, all, lengths).ok());
  CHECK(lengths == std::vector<size_t>{0, 64});
  REQUIRE(ReadLengths(path, 2, {PartitionId(4), PartitionId(8)}, lengths).ok());
  CHECK(lengths == std::vector<size_t>{0});
  REQUIRE(ReadLengths(path, 4, all, lengths).ok());
  CHECK(lengths.empty());
  // What is damaged elsewhere it does not see.
  Bytes bytes = ReadFile(path);
  const Bytes third(1000, 0x33);
  const auto at = std::search(bytes.begin(), bytes.end(), third.begin(), third.end());
  REQUIRE(at != bytes.end());
  at[500] = 0x34;
  WriteFile(path, bytes);
  CHECK(ReadLengths(path, 1, all, lengths).ok());
  CHECK(absl::IsDataLoss(ReadLengths(path, 3, all, lengths)));
}

}  // namespace
}  // namespace strata::storage
