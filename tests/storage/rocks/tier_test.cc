#include "storage/rocks/tier.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "proto/runtime/base/failpoints.h"
#include "storage/tier/watched_tier.h"
#include "tests/skip.h"
#include "tests/small_disk.h"
#include "tests/storage/tier/row_tier_conformance.h"
#include "tests/temp_folder.h"

namespace strata::storage {
namespace {

constexpr size_t kRowBytes = 1000;

absl::Status WriteRows(RowTier& tier, uint64_t first, uint64_t count, uint8_t value) {
  const std::vector<uint8_t> row(kRowBytes, value);
  std::vector<Position> positions;
  for (uint64_t i = 0; i < count; ++i) positions.push_back(Position((first + i) << 40));
  const std::vector<const uint8_t*> rows(count, row.data());
  return tier.Write(TableId(1), positions, rows, kRowBytes);
}

uint64_t CountRows(RowTier& tier) {
  uint64_t rows = 0;
  auto cursor = tier.NewCursor(TableId(1), Position(0), Position(~0ull), kRowBytes);
  for (; cursor->Valid(); cursor->Next()) ++rows;
  CHECK(cursor->status().ok());
  return rows;
}

TEST_CASE("a full disk is named, loses no accepted row, and passes", "[storage][rocks]") {
  TempFolder folder;
  SmallDisk disk(folder.path() + "/disk", 24 << 20);
  if (!disk.mounted()) STRATA_SKIP(disk.reason());
  const std::string ballast = disk.path() + "/ballast";
  std::ofstream(ballast) << std::string(16 << 20, 'x');
  auto tier = OpenRocksTier(
      {.directory = disk.path() + "/ssd", .partitions = 4, .memtable_bytes = 256 << 10});
  REQUIRE(tier.ok());
  absl::Status s;
  uint64_t accepted = 0;
  while (s.ok() && accepted < 40'000) {
    s = WriteRows(**tier, accepted, 100, 1);
    if (s.ok()) accepted += 100;
  }
  REQUIRE(s.code() == absl::StatusCode::kResourceExhausted);
  CHECK(std::string(s.message()).find(disk.path()) != std::string::npos);
  CHECK(CountRows(**tier) >= accepted);
  std::filesystem::remove(ballast);
  for (uint64_t more = 0; more < 2000; more += 100) {
    s = WriteRows(**tier, accepted + more, 100, 2);
    if (!s.ok()) FAIL(s.ToString());
  }
  CHECK(CountRows(**tier) == accepted + 2000);
}

// Where the disk fills up, in a flush, a compaction or a manifest, differs from round to round.
TEST_CASE("a disk that fills up again and again never holds a call up", "[storage][rocks]") {
  TempFolder folder;
  SmallDisk disk(folder.path() + "/disk", 16 << 20);
  if (!disk.mounted()) STRATA_SKIP(disk.reason());
  const int rounds = LongRun() ? 100 : 5;
  for (int round = 0; round < rounds; ++round) {
    auto tier = OpenRocksTier(
        {.directory = disk.path() + "/ssd", .partitions = 4, .memtable_bytes = 128 << 10});
    REQUIRE(tier.ok());
    uint64_t rows = 0;
    for (; rows < static_cast<uint64_t>(round) * 60; rows += 20) {
      REQUIRE(WriteRows(**tier, rows, 20, 1).ok());
    }
    disk.Fill();
    for (int again = 0; again < 3; ++again) {
      absl::Status s;
      while (s.ok() && rows < 10'000) {
        s = WriteRows(**tier, rows, 20, 1);
        if (s.ok()) rows += 20;
      }
      REQUIRE(s.code() == absl::StatusCode::kResourceExhausted);
      s = (*tier)->Sync();
      INFO(s.ToString());
      CHECK(s.code() == absl::StatusCode::kResourceExhausted);
    }
    if (round % 2 == 0) {
      disk.Free();
      const absl::Status s = (*tier)->Sync();
      INFO(s.ToString());
      REQUIRE(s.ok());
      CHECK(CountRows(**tier) >= rows);
    }
    tier->reset();  // on the full disk, every other time
    disk.Free();
  }
}

// Each write and each sync of one flush fails in its turn, once: of rows, manifest and folder.
TEST_CASE("a failed write or sync is never passed over", "[storage][rocks]") {
  for (const std::string place : {"tier.file.write", "tier.sync"}) {
    uint64_t turn = 1;
    for (bool met = true; met; ++turn) {
      INFO(place << ", call " << turn);
      TempFolder folder;
      const RocksTierOptions options{.directory = folder.path() + "/ssd", .partitions = 4};
      auto opened = OpenRocksTier(options);
      REQUIRE(opened.ok());
      auto tier = std::make_unique<WatchedTier>(*std::move(opened));
      REQUIRE(WriteRows(*tier, 0, 100, 1).ok());
      REQUIRE(tier->Sync().ok());
      REQUIRE(WriteRows(*tier, 100, 100, 2).ok());
      absl::Status s;
      {
        const ScopedFailpoint fail(
            place, {.act = FailWith(absl::UnavailableError("")), .first_hit = turn, .hits = 1});
        s = tier->Sync();
        met = FailpointHits(place) >= turn;
      }
      INFO(s.ToString());
      REQUIRE(s.ok() != met);
      if (!met) break;
      CHECK(absl::IsDataLoss(s));
      const std::string call = place == "tier.sync" ? "cannot sync " : "cannot write ";
      CHECK(absl::StrContains(s.message(), call + options.directory));
      CHECK(absl::StrContains(s.message(), "Input/output error"));
      CHECK(absl::StrContains(s.message(), "must be filled afresh"));
      CHECK(tier->damage() == s);
      // Nothing fails any more: what was lost is not thought written.
      CHECK(absl::IsDataLoss(tier->Sync()));
      CHECK(absl::IsDataLoss(WriteRows(*tier, 200, 1, 3)));
      CHECK(CountRows(*tier) == 200);  // reads go on
      tier.reset();
      auto fresh = OpenRocksTier(options);
      REQUIRE(fresh.ok());
      REQUIRE(WriteRows(**fresh, 0, 50, 4).ok());
      REQUIRE((*fresh)->Sync().ok());
      CHECK(CountRows(**fresh) == 50);
    }
    CHECK(turn > 2);  // a file of rows, and the manifest
  }
}

absl::StatusOr<std::unique_ptr<RowTier>> Open(const std::string& directory, OpenMode mode) {
  return OpenRocksTier({.directory = directory,
                        .partitions = kConformancePartitions,
                        .mode = mode,
                        .memtable_bytes = 512 << 10});
}

TEST_CASE("RocksDB follows a model", "[storage][rocks][seeds]") {
  TierFollowsAModel(Open, 1'000'000);
}
TEST_CASE("RocksDB holds extreme rows and positions", "[storage][rocks]") {
  TierHoldsExtremeRowsAndPositions(Open);
}
TEST_CASE("RocksDB takes batches of every size", "[storage][rocks]") {
  TierTakesBatchesOfEverySize(Open);
}
TEST_CASE("RocksDB drops partitions of many callers at once", "[storage][rocks]") {
  TierDropsPartitionsOfManyAtOnce(Open);
}
TEST_CASE("RocksDB survives a full disk", "[storage][rocks]") { TierSurvivesAFullDisk(Open); }
TEST_CASE("RocksDB survives want of handles", "[storage][rocks]") {
  TierSurvivesWantOfHandles(Open);
}
TEST_CASE("RocksDB finds damaged rows", "[storage][rocks]") {
  size_t blocks = 0;
  TierFindsDamage(Open, ".sst", [&](const FoundDamage& found) {
    CHECK(absl::StrContains(found.message, found.path));
    // Of a block; not of what is wrong in the file's footer.
    const std::optional<uint64_t> told = OffsetTold(found);
    if (!told) return;
    CHECK(*told <= found.offset);
    CHECK(found.offset < *told + 2 * 4096);
    ++blocks;
  });
  CHECK(blocks > 30);
}

// A bit of each byte: RocksDB names the file and no offset (FORMAT.md), or, of a record that has
// become too long, the mark of Sync shows that rows are missing.
TEST_CASE("RocksDB finds a damaged manifest", "[storage][rocks]") {
  TempFolder folder;
  const std::string whole = folder.path() + "/whole";
  {
    auto tier = Open(whole, OpenMode::kFresh);
    REQUIRE(tier.ok());
    for (uint64_t i = 0; i < 3; ++i) {
      REQUIRE(WriteRows(**tier, i * 4, 4, 1).ok());
      REQUIRE((*tier)->Sync().ok());
    }
  }
  std::string manifest;
  for (const auto& entry : std::filesystem::directory_iterator(whole)) {
    const std::string name = entry.path().filename();
    if (absl::StartsWith(name, "MANIFEST")) manifest = name;
  }
  REQUIRE_FALSE(manifest.empty());
  size_t marked = 0;
  const std::string bad = folder.path() + "/bad";
  const size_t bytes = std::filesystem::file_size(whole + "/" + manifest);
  for (size_t at = 0; at < bytes; ++at) {
    std::filesystem::remove_all(bad);
    std::filesystem::copy(whole, bad);
    {
      std::fstream file(bad + "/" + manifest, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(at));
      const auto byte = static_cast<char>(file.get() ^ (1 << at % 8));
      file.seekp(static_cast<std::streamoff>(at));
      file.put(byte);
    }
    auto tier = Open(bad, OpenMode::kKeep);
    INFO("byte " << at << " of " << bytes << ": " << tier.status());
    if (tier.ok()) {
      REQUIRE(CountRows(**tier) == 12);
      continue;
    }
    REQUIRE(absl::IsDataLoss(tier.status()));
    const bool mark = absl::StrContains(tier.status().message(), "SYNCED");
    REQUIRE((mark || absl::StrContains(tier.status().message(), bad + "/" + manifest)));
    REQUIRE(absl::StrContains(tier.status().message(), bad));
    marked += mark;
  }
  CHECK(marked > 0);
}

TEST_CASE("partitions are deleted whole, of all tables", "[storage][rocks]") {
  TempFolder folder;
  auto tier = OpenRocksTier({.directory = folder.path(), .partitions = 4});
  REQUIRE(tier.ok());
  std::vector<uint8_t> row(8, 3);
  const std::vector<const uint8_t*> rows(4, row.data());
  std::vector<Position> positions;
  for (uint64_t p = 0; p < 4; ++p) positions.push_back(Position((p + 1) * (1ull << 62) - 1));
  for (uint32_t table : {0u, 5u}) {
    REQUIRE((*tier)->Write(TableId(table), positions, rows, 8).ok());
  }
  REQUIRE((*tier)->DeletePartitions(PartitionId(1), PartitionId(2)).ok());
  for (uint32_t table : {0u, 5u}) {
    std::vector<size_t> found;
    REQUIRE((*tier)
                ->Read(TableId(table), positions, 8,
                       [&](size_t i, const uint8_t*) { found.push_back(i); })
                .ok());
    CHECK(found == std::vector<size_t>{0, 3});
  }
  CHECK((*tier)->Read(TableId(0), positions, 12, [](size_t, const uint8_t*) {}).code() ==
        absl::StatusCode::kDataLoss);
}

TEST_CASE("a folder in use and wrong options are refused", "[storage][rocks]") {
  TempFolder folder;
  auto tier = OpenRocksTier({.directory = folder.path(), .partitions = 4});
  REQUIRE(tier.ok());
  CHECK(OpenRocksTier({.directory = folder.path(), .partitions = 4, .mode = OpenMode::kKeep})
            .status()
            .code() == absl::StatusCode::kFailedPrecondition);
  CHECK(OpenRocksTier({.directory = folder.path(), .partitions = 3}).status().code() ==
        absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace strata::storage
