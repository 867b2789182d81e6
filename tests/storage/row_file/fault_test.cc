// The row file on a disk that fails: what is refused says so, what was taken stays readable, and a
// sync that failed is never taken for one that worked.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/base/manual_timer.h"
#include "storage/row_file/tier.h"
#include "tests/seed.h"
#include "tests/skip.h"
#include "tests/storage/io/scripted_files.h"
#include "tests/temp_folder.h"

namespace strata::storage {
namespace {

using Call = ScriptedFiles::Call;
using Rows = std::map<uint64_t, std::vector<uint8_t>>;
constexpr size_t kRowBytes = 100;
constexpr TableId kTable(1);

absl::StatusOr<std::unique_ptr<RowTier>> Open(const std::string& folder, FileSystem* files,
                                              OpenMode mode = OpenMode::kFresh) {
  return OpenRowFileTier({.directory = folder,
                          .partitions = 16,
                          .mode = mode,
                          .memtable_bytes = 64 << 10,
                          .reads = RowFileTierOptions::Reads::kThreads,
                          .files = files});
}

Rows RandomRows(std::mt19937_64& random, size_t n) {
  Rows rows;
  while (rows.size() < n) {
    std::vector<uint8_t> row(kRowBytes);
    for (uint8_t& b : row) b = static_cast<uint8_t>(random());
    rows[random() % 4096 << 52] = std::move(row);
  }
  return rows;
}

absl::Status Write(RowTier& tier, const Rows& rows) {
  std::vector<Position> positions;
  std::vector<const uint8_t*> pointers;
  for (const auto& [position, row] : rows) {
    positions.push_back(Position(position));
    pointers.push_back(row.data());
  }
  return tier.Write(kTable, positions, pointers, kRowBytes);
}

absl::StatusOr<Rows> Scan(RowTier& tier) {
  Rows out;
  auto cursor = tier.NewCursor(kTable, Position(0), Position(~uint64_t{0}), kRowBytes);
  for (; cursor->Valid(); cursor->Next()) {
    out[cursor->position().value] = {cursor->row().begin(), cursor->row().end()};
  }
  if (!cursor->status().ok()) return cursor->status();
  return out;
}

Rows Read(RowTier& tier, const Rows& wanted) {
  std::vector<Position> positions;
  for (const auto& [p, row] : wanted) positions.push_back(Position(p));
  Rows out;
  const absl::Status s = tier.Read(kTable, positions, kRowBytes, [&](size_t i, const uint8_t* row) {
    out[positions[i].value] = {row, row + kRowBytes};
  });
  INFO(s);
  REQUIRE(s.ok());
  return out;
}

void Take(const Rows& rows, Rows& expected) {
  for (const auto& [p, row] : rows) expected[p] = row;
}

// The script does not see posix_fallocate, which gives a file its size.
void GiveSize(const std::string& from, const std::string& to) {
  std::ofstream(to + "/ROWS", std::ios::app);
  std::filesystem::resize_file(to + "/ROWS", std::filesystem::file_size(from + "/ROWS"));
}

// The tier that opens on what the disk has after a power failure, copied to folder/NAME.
std::unique_ptr<RowTier> OpenAfterPowerLoss(ScriptedFiles& files, const TempFolder& folder,
                                            const std::string& name) {
  const std::string before = folder.path() + "/tier", after = folder.path() + "/" + name;
  REQUIRE(std::filesystem::create_directory(after));
  files.PowerLoss(before, after);
  GiveSize(before, after);
  auto tier = Open(after, nullptr, OpenMode::kKeep);
  INFO(tier.status());
  REQUIRE(tier.ok());
  return *std::move(tier);
}

// One kind of call fails now and then; whatever was answered OK is there, whatever was not is tried
// again by the caller, as the DRAM tier does.
TEST_CASE("errors of the disk lose no row of a row file", "[storage][row_file]") {
  struct Case {
    Call call;
    int error;
    absl::StatusCode code;
  };
  for (const Case& c : {Case{Call::kWrite, EIO, absl::StatusCode::kUnavailable},
                        Case{Call::kWrite, ENOSPC, absl::StatusCode::kResourceExhausted},
                        Case{Call::kOpen, EMFILE, absl::StatusCode::kResourceExhausted},
                        Case{Call::kRename, EIO, absl::StatusCode::kUnavailable},
                        Case{Call::kRead, EIO, absl::StatusCode::kUnavailable}}) {
    INFO("call " << static_cast<int>(c.call) << ", errno " << c.error);
    TempFolder folder;
    ScriptedFiles files(1);
    std::mt19937_64 random(static_cast<uint64_t>(c.error));
    auto tier = Open(folder.path(), &files);
    REQUIRE(tier.ok());
    Rows expected;
    size_t failures = 0;
    for (int round = 0; round < 25; ++round) {
      const Rows rows = RandomRows(random, 300);
      files.Fail(c.call, c.error, 1 + random() % 3, 3);
      absl::Status s;
      for (int tries = 0; tries < 50; ++tries) {
        s = Write(**tier, rows);
        if (s.ok()) s = (*tier)->Sync();
        if (s.ok()) break;
        ++failures;
        INFO(s);
        CHECK(s.code() == c.code);
        CHECK(std::string(s.message()).find(folder.path()) != std::string::npos);
      }
      INFO(s);
      REQUIRE(s.ok());
      Take(rows, expected);
      auto all = Scan(**tier);
      if (!all.ok()) all = Scan(**tier);  // the script's reads may still have been to come
      if (!all.ok()) all = Scan(**tier);
      if (!all.ok()) all = Scan(**tier);
      REQUIRE(all.ok());
      REQUIRE(*all == expected);
    }
    CHECK(failures > 0);
    CHECK(Read(**tier, expected) == expected);
    tier->reset();
    // What the last Sync saved is what the files hold.
    auto again = Open(folder.path(), nullptr, OpenMode::kKeep);
    REQUIRE(again.ok());
    auto all = Scan(**again);
    REQUIRE(all.ok());
    CHECK(*all == expected);
  }
}

TEST_CASE("partitions whose deletion failed lose nothing that comes later", "[storage][row_file]") {
  TempFolder folder;
  ScriptedFiles files(1);
  std::mt19937_64 random(7);
  auto tier = Open(folder.path(), &files);
  REQUIRE(tier.ok());
  REQUIRE(Write(**tier, RandomRows(random, 500)).ok());
  REQUIRE((*tier)->Sync().ok());
  files.Fail(Call::kWrite, EIO, 1, 1000);
  CHECK(absl::IsUnavailable((*tier)->DeletePartitions(PartitionId(0), PartitionId(7))));
  files.Fail(Call::kWrite, 0, 1, 0);
  Rows later;
  while (later.size() < 1500) later.merge(RandomRows(random, 1500 - later.size()));
  REQUIRE(Write(**tier, later).ok());
  REQUIRE((*tier)->Sync().ok());
  CHECK(Read(**tier, later) == later);
  REQUIRE((*tier)->DeletePartitions(PartitionId(0), PartitionId(15)).ok());
  CHECK(Scan(**tier)->empty());
}

TEST_CASE("after a failed sync a row file takes nothing more, and is read on",
          "[storage][row_file]") {
  TempFolder folder;
  ScriptedFiles files(1);
  std::mt19937_64 random(3);
  Rows saved, expected;
  {
    auto tier = Open(folder.path() + "/tier", &files);
    REQUIRE(tier.ok());
    Take(RandomRows(random, 400), saved);
    REQUIRE(Write(**tier, saved).ok());
    REQUIRE((*tier)->Sync().ok());
    expected = saved;
    const Rows rows = RandomRows(random, 400);
    REQUIRE(Write(**tier, rows).ok());
    Take(rows, expected);
    files.Fail(Call::kSync, EIO);
    // Once it failed, whether by this call or in the background before, it fails for good.
    const absl::Status first = (*tier)->Sync();
    CHECK(absl::IsDataLoss(first));
    const absl::Status second = (*tier)->Sync();
    INFO(second);
    CHECK(absl::IsDataLoss(second));
    CHECK(std::string(second.message()).find(folder.path()) != std::string::npos);
    absl::Status s;
    for (int i = 0; s.ok() && i < 100; ++i) s = Write(**tier, {{1, saved.begin()->second}});
    CHECK(Read(**tier, expected) == expected);
  }
  // No manifest names what the sync was about.
  auto again = Open(folder.path() + "/tier", nullptr, OpenMode::kKeep);
  REQUIRE(again.ok());
  auto all = Scan(**again);
  REQUIRE(all.ok());
  CHECK(*all == saved);
}

// Of what was written since the last sync a power failure leaves anything; of what was synced, all.
TEST_CASE("a power failure leaves a row file as it was at some sync",
          "[storage][row_file][seeds]") {
  for (const uint64_t seed : Seeds("row_file_power", 1, 8)) {
    INFO("seed " << seed);
    TempFolder folder;
    ScriptedFiles files(seed);
    std::mt19937_64 random(seed);
    Rows synced, expected;
    auto tier = Open(folder.path() + "/tier", &files);
    REQUIRE(tier.ok());
    for (int round = 0; round < 6; ++round) {
      const Rows rows = RandomRows(random, 250);
      REQUIRE(Write(**tier, rows).ok());
      Take(rows, expected);
      if (round % 2 == 1) {
        REQUIRE((*tier)->Sync().ok());
        synced = expected;
      }
    }
    const Rows late = RandomRows(random, 100);  // fits the memtable: nothing of it is written
    REQUIRE(Write(**tier, late).ok());
    const auto again = OpenAfterPowerLoss(files, folder, "after");
    auto all = Scan(*again);
    INFO(all.status());
    REQUIRE(all.ok());
    CHECK(*all == synced);
  }
}

TEST_CASE("what fails is tried again after a second of the timer", "[storage][row_file]") {
  TempFolder folder;
  ManualTimer timer;
  std::mt19937_64 random(5);
  int attempts = 0;
  absl::Notification second;
  const ScopedFailpoint fails("tier.flush", {.act = [&]() -> absl::Status {
                                if (++attempts == 1) return absl::UnavailableError("no");
                                if (attempts == 2) second.Notify();
                                return absl::OkStatus();
                              }});
  const absl::Time start = timer.Now();
  auto tier = OpenRowFileTier({.directory = folder.path() + "/tier",
                               .partitions = 16,
                               .memtable_bytes = 64 << 10,
                               .reads = RowFileTierOptions::Reads::kThreads,
                               .timer = &timer});
  REQUIRE(tier.ok());
  const Rows rows = RandomRows(random, 1000);  // more than a memtable holds
  REQUIRE(Write(**tier, rows).ok());
  REQUIRE(Write(**tier, rows).ok());  // the first is written in the background: nobody waits
  timer.AwaitAlarms(1);
  CHECK(timer.next() == start + absl::Seconds(1));
  timer.AdvanceTo(timer.next());
  second.WaitForNotification();
  CHECK(Read(**tier, rows) == rows);
}

// As above, but at any moment of a tier that is written to all the time, with merges and new bases
// under way: what the disk has is what was written up to some point, not before the last sync.
TEST_CASE("a power failure at any moment leaves all rows up to some write",
          "[storage][row_file][seeds]") {
  const uint64_t seed = GENERATE(from_range(Seeds("row_file_outages")));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int life = 0; life < (SeedsAreGiven() ? 1 : LongRun() ? 60 : 4); ++life) {
    TempFolder folder;
    ScriptedFiles files(random());
    auto tier = Open(folder.path() + "/tier", &files);
    REQUIRE(tier.ok());
    std::vector<Rows> states = {{}};  // at the last sync, and after each write since
    for (int outage = 0; outage < 3; ++outage) {
      for (uint64_t writes = 20 + random() % 40; writes > 0; --writes) {
        // What fails now and then is done again by the tier.
        if (random() % 20 == 0) files.Fail(Call::kRename, EIO);
        const Rows rows = RandomRows(random, 1 + random() % 300);
        absl::Status s = Write(**tier, rows);
        for (int tries = 0; !s.ok() && tries < 10; ++tries) s = Write(**tier, rows);
        INFO(s);
        REQUIRE(s.ok());
        states.push_back(states.back());
        Take(rows, states.back());
        if (random() % 15 == 0 && (*tier)->Sync().ok()) states = {Rows(states.back())};
      }
      const auto again = OpenAfterPowerLoss(files, folder, std::to_string(outage));
      auto all = Scan(*again);
      INFO(all.status());
      REQUIRE(all.ok());
      CAPTURE(life, outage, states.size(), all->size());
      REQUIRE((std::find(states.begin(), states.end(), *all) != states.end()));
      CHECK(Read(*again, *all) == *all);
    }
  }
}

}  // namespace
}  // namespace strata::storage
