#include "storage/row_file/tier.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "storage/row_file/block.h"
#include "storage/row_file/volume.h"
#include "tests/storage/tier/row_tier_conformance.h"
#include "tests/temp_folder.h"

namespace strata::storage {
namespace {

absl::StatusOr<std::unique_ptr<RowTier>> Open(const std::string& directory, OpenMode mode) {
  return OpenRowFileTier({.directory = directory,
                          .partitions = kConformancePartitions,
                          .mode = mode,
                          .memtable_bytes = 512 << 10});
}

absl::StatusOr<std::unique_ptr<RowTier>> OpenWithThreads(const std::string& directory,
                                                         OpenMode mode) {
  return OpenRowFileTier({.directory = directory,
                          .partitions = kConformancePartitions,
                          .mode = mode,
                          .memtable_bytes = 64 << 10,
                          .reads = RowFileTierOptions::Reads::kThreads});
}

TEST_CASE("a row file follows a model", "[storage][row_file][seeds]") {
  TierFollowsAModel(Open, 1'000'000);
}
TEST_CASE("a row file read by threads follows a model", "[storage][row_file][seeds]") {
  TierFollowsAModel(OpenWithThreads, 250'000);
}
TEST_CASE("a row file holds extreme rows and positions", "[storage][row_file]") {
  TierHoldsExtremeRowsAndPositions(Open);
}
TEST_CASE("a row file takes batches of every size", "[storage][row_file]") {
  TierTakesBatchesOfEverySize(Open);
}
TEST_CASE("a row file drops partitions of many callers at once", "[storage][row_file]") {
  TierDropsPartitionsOfManyAtOnce(Open);
}
TEST_CASE("a row file survives a full disk", "[storage][row_file]") { TierSurvivesAFullDisk(Open); }
TEST_CASE("a row file survives want of handles", "[storage][row_file]") {
  TierSurvivesWantOfHandles(Open);
}
TEST_CASE("a row file finds damaged rows", "[storage][row_file]") {
  size_t blocks = 0;
  TierFindsDamage(Open, "ROWS", [&](const FoundDamage& found) {
    const std::optional<uint64_t> told = OffsetTold(found);
    REQUIRE(told.has_value());
    CHECK(*told % row_file::kPageBytes == 0);
    CHECK(*told <= found.offset);
    if (absl::StrContains(found.message, "an index that does not check")) return;
    CHECK(absl::StrContains(found.message, "a block that does not check"));
    CHECK(found.offset < *told + row_file::BlockShape::For(100).block_bytes);
    ++blocks;
  });
  CHECK(blocks > 0);
}
TEST_CASE("a row file finds a damaged manifest", "[storage][row_file]") {
  TierFindsDamage(Open, "MANIFEST",
                  [](const FoundDamage& found) { CHECK(OffsetTold(found) == uint64_t{0}); });
}

TEST_CASE("a row file refuses what it cannot do", "[storage][row_file]") {
  TempFolder folder;
  auto tier = Open(folder.path(), OpenMode::kFresh);
  REQUIRE(tier.ok());
  CHECK(Open(folder.path(), OpenMode::kKeep).status().code() ==
        absl::StatusCode::kFailedPrecondition);
  CHECK(OpenRowFileTier({.directory = folder.path(), .partitions = 3}).status().code() ==
        absl::StatusCode::kInvalidArgument);
  CHECK(OpenRowFileTier({.directory = folder.path(), .partitions = 4, .base_filter_bits = 0})
            .status()
            .code() == absl::StatusCode::kInvalidArgument);
  REQUIRE((*tier)->Sync().ok());
  tier->reset();
  CHECK(OpenRowFileTier({.directory = folder.path(), .partitions = 4, .mode = OpenMode::kKeep})
            .status()
            .code() == absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace strata::storage
