#include "tests/storage/tier/row_tier_conformance.h"

#include <sys/resource.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/partition.h"
#include "tests/seed.h"
#include "tests/skip.h"
#include "tests/small_disk.h"
#include "tests/storage/tier/tier_model.h"
#include "tests/temp_folder.h"

namespace strata::storage {

void TierFollowsAModel(const OpenTierFunction& open, size_t operations) {
  if (SeedsAreGiven()) operations /= 10;
  const size_t most = Operations(LongRun() ? 4 * operations : operations);
  for (const uint64_t seed : Seeds("tier_model")) {
    INFO("seed " << seed);
    TempFolder folder;
    TierModel model(open, folder.path() + "/tier", kConformancePartitions, seed);
    for (size_t done = 0; done < most;) done += model.Step();
    model.CheckAll();
  }
}

void TierHoldsExtremeRowsAndPositions(const OpenTierFunction& open) {
  for (const size_t row_bytes : {size_t{4}, size_t{4096 * 4}, size_t{3 * 4096 * 4 + 8}}) {
    TempFolder folder;
    auto tier = open(folder.path() + "/tier", OpenMode::kFresh);
    REQUIRE(tier.ok());
    Rows rows;
    for (uint64_t p : {0ull, 1ull, 1ull << 60, (1ull << 60) - 1, ~0ull - 1, ~0ull}) {
      rows[p] = Bytes(row_bytes, static_cast<uint8_t>(p ^ p >> 60));
    }
    for (uint32_t table : {0u, ~0u}) {
      REQUIRE(WriteAll(**tier, TableId(table), rows, row_bytes).ok());
    }
    for (OpenMode mode : {OpenMode::kKeep, OpenMode::kKeep, OpenMode::kFresh}) {
      const Rows expected = mode == OpenMode::kKeep ? rows : Rows();
      if (mode == OpenMode::kFresh) {
        tier->reset();
        tier = open(folder.path() + "/tier", mode);
        REQUIRE(tier.ok());
      }
      for (uint32_t table : {0u, ~0u}) {
        auto found = ReadAll(**tier, TableId(table),
                             {0, 1, 2, 1ull << 60, (1ull << 60) - 1, ~0ull - 2, ~0ull - 1, ~0ull},
                             row_bytes);
        REQUIRE(found.ok());
        CHECK((*found == expected));
        auto scanned = Scan(**tier, TableId(table), 0, ~0ull, row_bytes);
        REQUIRE(scanned.ok());
        CHECK((*scanned == expected));
      }
      auto other = Scan(**tier, TableId(5), 0, ~0ull, row_bytes);
      REQUIRE(other.ok());
      CHECK(other->empty());
      if (mode == OpenMode::kKeep) {
        REQUIRE((*tier)->Sync().ok());
        tier->reset();
        tier = open(folder.path() + "/tier", OpenMode::kKeep);
        REQUIRE(tier.ok());
      }
    }
  }
}

void TierTakesBatchesOfEverySize(const OpenTierFunction& open) {
  TempFolder folder;
  auto tier = open(folder.path() + "/tier", OpenMode::kFresh);
  REQUIRE(tier.ok());
  CHECK((*tier)->Write(TableId(1), {}, {}, 8).ok());
  CHECK((*tier)->Delete(TableId(1), {}).ok());
  CHECK((*tier)->Read(TableId(1), {}, 8, [](size_t, const uint8_t*) { FAIL(); }).ok());
  Rows rows;  // more than a chunk of a write, and than a window of a read
  for (uint64_t i = 0; i < 9000; ++i) {
    Bytes row(1000);
    std::memcpy(row.data(), &i, sizeof(i));
    rows[i << 50] = row;
  }
  REQUIRE(WriteAll(**tier, TableId(1), rows, 1000).ok());
  REQUIRE((*tier)->Sync().ok());
  std::set<uint64_t> wanted;
  for (uint64_t i = 0; i < 9000; ++i) {
    wanted.insert(i << 50);
    wanted.insert((i << 50) + 1);
  }
  auto found = ReadAll(**tier, TableId(1), wanted, 1000);
  REQUIRE(found.ok());
  CHECK((*found == rows));
  const TierStats stats = (*tier)->stats();
  CHECK(stats.asked_bytes == 9'000'000);
  CHECK(stats.written_bytes >= 9'000'000);
  CHECK(stats.rows_asked == 18'000);
  CHECK(stats.read_bytes > 0);
  CHECK(stats.live_bytes > 8'000'000);
  CHECK(stats.live_bytes < 11'000'000);
  CHECK(stats.file_bytes >= stats.live_bytes);
}

void TierDropsPartitionsOfManyAtOnce(const OpenTierFunction& open) {
  TempFolder folder;
  auto tier = open(folder.path() + "/tier", OpenMode::kFresh);
  REQUIRE(tier.ok());
  const Partitioning parts(kConformancePartitions);
  constexpr uint32_t kThreads = 4;
  for (uint32_t round = 0; round < 12; ++round) {
    Rows rows;
    for (uint64_t i = 0; i < 2000; ++i) rows[i << 53] = Bytes(400, static_cast<uint8_t>(round));
    REQUIRE(WriteAll(**tier, TableId(1), rows, 400).ok());
    // Thread t drops partitions 4 t and, every other time, its neighbour.
    const auto last = [round](uint32_t t) { return PartitionId(4 * t + (round + t) % 2); };
    std::vector<absl::Status> done(kThreads);
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < kThreads; ++t) {
      threads.emplace_back(
          [&, t] { done[t] = (*tier)->DeletePartitions(PartitionId(4 * t), last(t)); });
    }
    for (std::thread& thread : threads) thread.join();
    for (uint32_t t = 0; t < kThreads; ++t) {
      INFO(done[t].ToString());
      REQUIRE(done[t].ok());
      rows.erase(rows.lower_bound(parts.First(PartitionId(4 * t)).value),
                 rows.upper_bound(parts.Last(last(t)).value));
    }
    auto left = Scan(**tier, TableId(1), 0, ~0ull, 400);
    REQUIRE(left.ok());
    REQUIRE((*left == rows));
  }
}

void TierSurvivesAFullDisk(const OpenTierFunction& open) {
  TempFolder folder;
  SmallDisk disk(folder.path() + "/disk", 24 << 20);
  if (!disk.mounted()) STRATA_SKIP(disk.reason());
  auto tier = open(disk.path() + "/tier", OpenMode::kFresh);
  REQUIRE(tier.ok());
  Rows accepted;
  const auto write = [&](uint8_t value) {
    Rows rows;
    for (uint64_t i = 0; i < 100; ++i) {
      rows[(accepted.size() + i) * 0x0000fedcba987651ull] = Bytes(1000, value);
    }
    absl::Status s = WriteAll(**tier, TableId(1), rows, 1000);
    if (s.ok()) accepted.merge(rows);
    return s;
  };
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 10; ++i) REQUIRE(write(1).ok());
    disk.Fill();
    absl::Status s;
    while (s.ok() && accepted.size() < 30'000) s = write(2);
    INFO(s.ToString());
    REQUIRE(s.code() == absl::StatusCode::kResourceExhausted);
    CHECK(std::string(s.message()).find(disk.path()) != std::string::npos);
    CHECK((*tier)->Sync().code() == absl::StatusCode::kResourceExhausted);
    auto all = Scan(**tier, TableId(1), 0, ~0ull, 1000);  // reads go on
    REQUIRE(all.ok());
    CHECK(std::includes(all->begin(), all->end(), accepted.begin(), accepted.end()));
    disk.Free();
    s = write(3);
    if (!s.ok()) FAIL(s.ToString());
    s = (*tier)->Sync();
    if (!s.ok()) FAIL(s.ToString());
    auto again = Scan(**tier, TableId(1), 0, ~0ull, 1000);
    REQUIRE(again.ok());
    CHECK((*again == accepted));
  }
}

void TierSurvivesWantOfHandles(const OpenTierFunction& open) {
  TempFolder folder;
  auto tier = open(folder.path() + "/tier", OpenMode::kFresh);
  REQUIRE(tier.ok());
  Rows rows;
  for (uint64_t i = 0; i < 4000; ++i) rows[i << 51] = Bytes(1000, static_cast<uint8_t>(i));
  rlimit before;
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{3, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  absl::Status s = WriteAll(**tier, TableId(1), rows, 1000);
  if (s.ok()) s = (*tier)->Sync();
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  INFO(s.ToString());
  CHECK(s.code() == absl::StatusCode::kResourceExhausted);
  s = WriteAll(**tier, TableId(1), rows, 1000);
  if (s.ok()) s = (*tier)->Sync();
  INFO(s.ToString());
  REQUIRE(s.ok());
  auto all = Scan(**tier, TableId(1), 0, ~0ull, 1000);
  REQUIRE(all.ok());
  CHECK((*all == rows));
}

void TierFindsDamage(const OpenTierFunction& open, const std::string& prefix,
                     const std::function<void(const FoundDamage&)>& check) {
  TempFolder folder;
  const std::string directory = folder.path() + "/tier";
  Rows rows;
  std::mt19937_64 random(7);
  for (uint64_t i = 0; i < 2000; ++i) {
    Bytes row(100);
    for (uint8_t& b : row) b = static_cast<uint8_t>(random());
    rows[i << 52] = row;
  }
  std::set<uint64_t> wanted;
  for (const auto& [p, row] : rows) wanted.insert(p);
  {
    auto tier = open(directory, OpenMode::kFresh);
    REQUIRE(tier.ok());
    REQUIRE(WriteAll(**tier, TableId(1), rows, 100).ok());
    REQUIRE((*tier)->Sync().ok());
  }
  size_t found_damage = 0;
  for (int i = 0; i < 60; ++i) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      const std::string name = entry.path().filename().string();
      const bool is_one =
          prefix[0] == '.' ? entry.path().extension() == prefix : name.rfind(prefix, 0) == 0;
      if (is_one && entry.file_size() > 0) files.push_back(entry.path());
    }
    REQUIRE(!files.empty());
    std::sort(files.begin(), files.end());
    const auto& path = files[random() % files.size()];
    const auto at = static_cast<std::streamoff>(random() % std::filesystem::file_size(path));
    const auto flip = [&](char bit) {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(at);
      const auto byte = static_cast<char>(file.get() ^ bit);
      file.seekp(at);
      file.put(byte);
    };
    const auto bit = static_cast<char>(1 << random() % 8);
    flip(bit);
    auto tier = open(directory, OpenMode::kKeep);
    absl::StatusOr<Rows> all =
        tier.ok() ? ReadAll(**tier, TableId(1), wanted, 100) : absl::StatusOr<Rows>(tier.status());
    INFO(path << " at " << at << ": " << all.status().ToString());
    if (all.ok()) {
      CHECK((*all == rows));  // the bit was in unused bytes
    } else {
      ++found_damage;
      CHECK(all.status().code() == absl::StatusCode::kDataLoss);
      const std::string message(all.status().message());
      CHECK(message.find(directory) != std::string::npos);
      check({path, static_cast<uint64_t>(at), message});
    }
    if (tier.ok()) tier->reset();
    flip(bit);
  }
  CHECK(found_damage > 0);
}

std::optional<uint64_t> OffsetTold(const FoundDamage& found) {
  for (const std::string& before : {found.path + ", offset ", found.path + " offset "}) {
    const size_t at = found.message.find(before);
    if (at != std::string::npos) return std::stoull(found.message.substr(at + before.size()));
  }
  return std::nullopt;
}

}  // namespace strata::storage
