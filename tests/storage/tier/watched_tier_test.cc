#include "storage/tier/watched_tier.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "storage/row_file/tier.h"
#include "tests/storage/tier/row_tier_conformance.h"
#include "tests/temp_folder.h"

namespace strata::storage {
namespace {

constexpr TableId kTable(1);
constexpr size_t kRowBytes = 100;

std::unique_ptr<WatchedTier> OpenWatched(const std::string& folder, OpenMode mode) {
  auto tier = OpenRowFileTier({.directory = folder,
                               .partitions = kConformancePartitions,
                               .mode = mode,
                               .memtable_bytes = 64 << 10});
  REQUIRE(tier.ok());
  return std::make_unique<WatchedTier>(*std::move(tier));
}

std::vector<Position> Positions() {
  std::vector<Position> all;
  for (uint64_t p = 0; p < 500; ++p) all.push_back(Position(p << 50));
  return all;
}

void Fill(RowTier& tier) {
  const std::vector<uint8_t> row(kRowBytes, 7);
  const std::vector<const uint8_t*> rows(Positions().size(), row.data());
  REQUIRE(tier.Write(kTable, Positions(), rows, kRowBytes).ok());
  REQUIRE(tier.Sync().ok());
}

absl::Status ReadAll(RowTier& tier, size_t row_bytes = kRowBytes) {
  return tier.Read(kTable, Positions(), row_bytes, [](size_t, const uint8_t*) {});
}

absl::Status ScanAll(RowTier& tier) {
  auto cursor = tier.NewCursor(kTable, Position(0), Position(~uint64_t{0}), kRowBytes);
  while (cursor->Valid()) cursor->Next();
  return cursor->status();
}

void Scramble(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  for (uint64_t at = 100; at < std::filesystem::file_size(path); at += 512) {
    file.seekp(static_cast<std::streamoff>(at));
    file.put('\x55');
  }
}

TEST_CASE("a watched tier is the tier that it watches", "[storage]") {
  const auto open = [](const std::string& folder, OpenMode mode) {
    return absl::StatusOr<std::unique_ptr<RowTier>>(OpenWatched(folder, mode));
  };
  TierTakesBatchesOfEverySize(open);
  TierFollowsAModel(open, 100'000);
}

TEST_CASE("a watched tier remembers damage that a read or a scan met", "[storage]") {
  for (const bool scan : {false, true}) {
    INFO((scan ? "scan" : "read"));
    TempFolder folder;
    const auto tier = OpenWatched(folder.path(), OpenMode::kFresh);
    Fill(*tier);
    REQUIRE(ReadAll(*tier).ok());
    REQUIRE(ScanAll(*tier).ok());
    CHECK(tier->damage().ok());
    Scramble(folder.path() + "/ROWS");
    const absl::Status met = scan ? ScanAll(*tier) : ReadAll(*tier);
    CHECK(absl::IsDataLoss(met));
    CHECK(tier->damage() == met);
    // The first one stays.
    CHECK(absl::IsDataLoss(ReadAll(*tier, kRowBytes + 1)));
    CHECK(tier->damage() == met);
  }
}

TEST_CASE("an error that may pass is no damage", "[storage]") {
  TempFolder folder;
  const auto tier = OpenWatched(folder.path(), OpenMode::kFresh);
  const uint8_t row[1] = {};
  const uint8_t* const rows[] = {row};
  const Position positions[] = {Position(1)};
  CHECK_FALSE(tier->Write(kTable, positions, rows, kRowFileMostRowBytes + 1).ok());
  CHECK(tier->damage().ok());
}

}  // namespace
}  // namespace strata::storage
