#include "storage/row_file_tier.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "tests/storage/row_tier_conformance.h"
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

TEST_CASE("a row file follows a model", "[storage][row_file]") { TierFollowsAModel(Open); }
TEST_CASE("a row file read by threads follows a model", "[storage][row_file]") {
  TierFollowsAModel(OpenWithThreads);
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
TEST_CASE("a row file finds damaged rows", "[storage][row_file]") { TierFindsDamage(Open, "ROWS"); }
TEST_CASE("a row file finds a damaged manifest", "[storage][row_file]") {
  TierFindsDamage(Open, "MANIFEST");
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
