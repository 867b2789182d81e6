// The stream of removed keys of a shard: on the disk before anything stands for it, and the same
// whatever dies.
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/shard/shard.h"
#include "server/table/memory.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/delta/removed_stream.h"
#include "tests/seed.h"
#include "tests/server/shard/life_cycle_account.h"
#include "tests/server/shard/shard_fixture.h"
#include "tests/storage/io/scripted_files.h"
#include "tests/temp_folder.h"

namespace strata::server {
namespace {

using storage::ScriptedFiles;
using Call = ScriptedFiles::Call;
using Removals = std::map<uint64_t, std::vector<uint64_t>>;  // keys, by step

std::unique_ptr<Shard> MakeRemoving(const TableSpec& table, const std::string& stream,
                                    FileSystem* files, storage::UpdateLog* log,
                                    bool synchronous = true) {
  ShardOptions o;
  o.synchronous = synchronous;
  o.job = JobId(1);
  o.generation = Generation(1);
  o.map_epoch = MapEpoch(1);
  o.id = ShardId(0);
  o.partitioning = Partitioning(kPartitions);
  o.range = Ranges(1)[0];
  o.tables = {table};
  o.seed = kSeed;
  o.log = log;
  storage::RemovedWriter::Options removed;
  removed.folder = stream;
  removed.name = {Generation(1), Step(0), ShardId(0)};
  removed.tables = {{table.id, table.kind, kDim, storage::RowLayout::For(table).state_floats}};
  removed.files = files;
  o.removed = std::make_unique<storage::RemovedWriter>(std::move(removed));
  const Position first(0), last(~uint64_t{0});
  auto memory = DivideMemory(o.tables, first, last, 0, 1);
  REQUIRE(memory.ok());
  auto rows = MakeTables(o.tables, first, last, *memory, nullptr);
  REQUIRE(rows.ok());
  return std::make_unique<Shard>(std::move(o), *std::move(rows));
}

// Tried again until the disk takes it; returns how often it did not.
size_t Commit(Shard& shard, const Push& push, uint64_t step) {
  ShardUpdate update = UpdateOf(push, shard, 1 + step % 3);
  REQUIRE(shard.Contribute(Step(step), {0, 1}, std::move(update)).verdict == GateVerdict::kHeld);
  for (size_t failures = 0;; ++failures) {
    REQUIRE(failures < 100);
    auto done = shard.TryCommit();
    if (done.ok()) {
      REQUIRE(*done);
      return failures;
    }
    INFO(done.status());
    REQUIRE(absl::IsResourceExhausted(done.status()));
    REQUIRE(shard.clock() == Step(step - 1));
  }
}

Removals Read(const std::string& folder) {
  Removals all;
  const absl::Status s = storage::ReadRemoved(folder, [&](const storage::RemovedKeys& removed) {
    std::vector<uint64_t>& keys = all[removed.step];
    keys.insert(keys.end(), removed.keys.begin(), removed.keys.end());
    return absl::OkStatus();
  });
  INFO(s);
  REQUIRE(s.ok());
  return all;
}

// What a shard that nothing happens to removes, at every step.
Removals Undisturbed(const TableSpec& table) {
  TempFolder folder;
  auto shard = MakeRemoving(table, folder.path() + "/gone", nullptr, nullptr);
  REQUIRE(shard->StartRemoved(true).ok());
  for (uint64_t step = 1; step <= kSteps; ++step) Commit(*shard, PushOf(table, 1, step), step);
  const LifeCycleCounters counters = shard->life_cycle();
  const Removals all = Read(folder.path() + "/gone");
  uint64_t told = 0, counted = 0;
  for (const auto& [step, keys] : all) told += keys.size();
  for (const uint64_t rows : counters.removed) counted += rows;
  REQUIRE(told == counted);
  REQUIRE(told > 20);
  return all;
}

TEST_CASE("no image and no checkpoint stands for removals that are not durable",
          "[shard_life_cycle]") {
  const TableSpec table = Table(Cases()[0].rules);
  for (const bool image : {true, false}) {
    TempFolder folder;
    ScriptedFiles files(1);
    auto shard = MakeRemoving(table, folder.path() + "/gone", &files, nullptr);
    REQUIRE(shard->StartRemoved(true).ok());
    for (uint64_t step = 1; step <= 24; ++step) Commit(*shard, PushOf(table, 1, step), step);
    REQUIRE(Read(folder.path() + "/gone").size() > 3);
    const auto write = [&](const std::string& name) {
      const std::string path = folder.path() + "/" + name;
      return image ? shard->WriteImage(path, 0)
                   : shard->WriteCheckpoint(path, shard->clock()).status();
    };
    REQUIRE(write("first").ok());
    // A power failure leaves all of it.
    const std::string after = folder.path() + "/after";
    std::filesystem::create_directory(after);
    files.PowerLoss(folder.path() + "/gone", after);
    CHECK(Read(after) == Read(folder.path() + "/gone"));
    for (uint64_t step = 25; step <= 36; ++step) Commit(*shard, PushOf(table, 1, step), step);
    files.Fail(Call::kSync, EIO);
    CHECK(absl::IsUnavailable(write("second")));
    CHECK(absl::IsUnavailable(write("third")));
    CHECK_FALSE(std::filesystem::exists(folder.path() + "/second"));
    CHECK_FALSE(std::filesystem::exists(folder.path() + "/third"));
  }
}

// Image, log, and the stream as a power failure or a kill leaves it; full disks in between.
TEST_CASE("what a shard removes is told once, whatever dies", "[shard_life_cycle][seeds]") {
  const uint64_t seed = GENERATE(from_range(Seeds("life_cycle_removed", 13)));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  size_t failures = 0;
  for (const Case& c : Cases()) {
    INFO(c.name);
    const TableSpec table = Table(c.rules);
    const Removals expected = Undisturbed(table);
    for (const uint64_t died : {uint64_t{9}, uint64_t{22}, uint64_t{40}}) {
      INFO("died after step " << died);
      TempFolder folder;
      ScriptedFiles files(random());
      std::string stream = folder.path() + "/gone";
      const std::string image = folder.path() + "/image";
      const auto train = [&](Shard& shard, uint64_t first, uint64_t last) {
        for (uint64_t step = first; step <= last; ++step) {
          files.Fail(Call::kWrite, ENOSPC, 1 + random() % 3, 1 + random() % 3);
          failures += Commit(shard, PushOf(table, 1, step), step);
          REQUIRE(Read(stream) == Removals(expected.begin(), expected.upper_bound(step)));
        }
        files.Fail(Call::kWrite, 0, 1, 0);
      };
      {
        auto log = OpenLog(folder.path() + "/log");
        auto shard = MakeRemoving(table, stream, &files, log.get());
        REQUIRE(shard->StartRemoved(true).ok());
        train(*shard, 1, died - 4);
        REQUIRE(shard->WriteImage(image, 0).ok());
        train(*shard, died - 3, died);
        const std::string after = folder.path() + "/after";
        std::filesystem::create_directory(after);
        files.PowerLoss(stream, after);
        if (random() % 2 == 0) stream = after;
      }
      auto log = OpenLog(folder.path() + "/log");
      auto shard = MakeRemoving(table, stream, &files, log.get());
      auto reader = storage::ShardFileReader::Open(image);
      REQUIRE(reader.ok());
      REQUIRE(shard->LoadImage(**reader).ok());
      // What comes after the image is cut off, and told again by the replay.
      CHECK(Read(stream) == Removals(expected.begin(), expected.upper_bound(died - 4)));
      REQUIRE(
          log->Replay(0, [&](const storage::LogRecordView& r) { return shard->Replay(r); }).ok());
      REQUIRE(shard->clock() == Step(died));
      CHECK(Read(stream) == Removals(expected.begin(), expected.upper_bound(died)));
      train(*shard, died + 1, kSteps);
      CHECK(Read(stream) == expected);
    }
  }
  CHECK(failures > 20);
}

TEST_CASE("asynchronous removals have the number of the cut after them", "[shard_life_cycle]") {
  const TableSpec table = Table(Cases()[0].rules);
  TempFolder folder;
  const std::string stream = folder.path() + "/gone";
  auto shard = MakeRemoving(table, stream, nullptr, nullptr, /*synchronous=*/false);
  REQUIRE(shard->StartRemoved(true).ok());
  std::map<uint64_t, uint64_t> expected;  // rows, by number
  uint64_t counted = 0;
  for (uint64_t window = 0; window < kSteps; ++window) {
    const uint64_t number = shard->barrier().taken() + 1;
    auto done = shard->ApplyWindow(TaskId(1), window, LaneId(0),
                                   UpdateOf(PushOf(table, 1, window + 1), *shard, 1));
    REQUIRE(done.ok());
    REQUIRE(*done == Shard::WindowResult::kApplied);
    uint64_t removed = 0;
    for (const uint64_t rows : shard->life_cycle().removed) removed += rows;
    if (removed > counted) expected[number] += removed - counted;
    counted = removed;
    if (window != 19 && window != 33) continue;
    shard->barrier().Begin(window);  // cuts 19 and 33
    shard->barrier().Mark(0, window, {});
    REQUIRE(shard->barrier().Ready());
    REQUIRE(shard->CutTaken().ok());
  }
  std::map<uint64_t, uint64_t> told;
  for (const auto& [number, keys] : Read(stream)) told[number] = keys.size();
  CHECK(told == expected);
  CHECK(told.size() == 3);
}

}  // namespace
}  // namespace strata::server
