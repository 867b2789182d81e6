// The RocksDB tier around the page cache.
#include "storage/rocks/reads.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "storage/rocks/tier.h"
#include "tests/storage/tier/row_tier_conformance.h"

namespace strata::storage {
namespace {

absl::StatusOr<std::unique_ptr<RowTier>> OpenDirect(const std::string& directory, OpenMode mode) {
  return OpenRocksTier({.directory = directory,
                        .partitions = kConformancePartitions,
                        .mode = mode,
                        .memtable_bytes = 512 << 10,
                        .block_cache_bytes = 64 << 10,  // so that most blocks are read from files
                        .io = RocksTierOptions::Io::kDirect});
}

TEST_CASE("RocksDB around the page cache follows a model", "[storage][rocks][seeds]") {
  TierFollowsAModel(OpenDirect, 250'000);
}
TEST_CASE("RocksDB around the page cache holds extreme rows and positions", "[storage][rocks]") {
  TierHoldsExtremeRowsAndPositions(OpenDirect);
}
TEST_CASE("RocksDB around the page cache takes batches of every size", "[storage][rocks]") {
  TierTakesBatchesOfEverySize(OpenDirect);
}
TEST_CASE("RocksDB around the page cache survives a full disk", "[storage][rocks]") {
  TierSurvivesAFullDisk(OpenDirect);
}
TEST_CASE("RocksDB around the page cache survives want of handles", "[storage][rocks]") {
  TierSurvivesWantOfHandles(OpenDirect);
}
TEST_CASE("RocksDB around the page cache finds damaged rows", "[storage][rocks]") {
  TierFindsDamage(OpenDirect, ".sst", [](const FoundDamage& found) {
    CHECK(absl::StrContains(found.message, found.path));
  });
}

}  // namespace
}  // namespace strata::storage
