// A shard's asynchronous windows: each applied once, in any order, also by a replay of the log.
#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "server/shard/shard.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/log/record.h"
#include "storage/log/update_log.h"
#include "storage/row/hash.h"
#include "tests/seed.h"
#include "tests/server/shard/shard_fixture.h"
#include "tests/temp_folder.h"

namespace strata::server {
namespace {

storage::HashSum HashOf(Shard& shard) {
  auto summary = shard.Summarize();
  REQUIRE(summary.ok());
  return summary->hash;
}

TEST_CASE("asynchronous windows: duplicates, any order, replay", "[shard][async][seeds]") {
  TempFolder folder;
  for (const uint64_t seed : Seeds("shard_windows", 0, 20)) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const std::string path = folder.path() + "/" + std::to_string(seed);
    auto log = OpenLog(path);
    auto shard = MakeShard({.synchronous = false, .log = log.get()});
    Reference reference;
    std::set<std::pair<uint64_t, uint64_t>> applied;
    for (int i = 0; i < 60; ++i) {
      const uint64_t task = random() % 3, window = random() % 8;
      const LaneWork work = WorkOf(seed, task * 100 + window, 0);
      auto result =
          shard->ApplyWindow(TaskId(task), window, LaneId(0),
                             UpdateFor(work, shard->first_position(), shard->last_position()));
      REQUIRE(result.ok());
      const bool fresh = applied.insert({task, window}).second;
      REQUIRE(*result == (fresh ? Shard::WindowResult::kApplied : Shard::WindowResult::kRepeated));
      if (fresh) reference.Apply(work, applied.size());
    }
    REQUIRE(HashOf(*shard) == reference.Hash());
    REQUIRE(shard->clock() == Step(applied.size()));
    REQUIRE(shard->WriteImage(folder.path() + "/image", 0).ok());
    auto replayed = MakeShard({.synchronous = false, .log = log.get()});
    if (seed % 2 == 0) {
      auto image = storage::ShardFileReader::Open(folder.path() + "/image");
      REQUIRE(image.ok());
      REQUIRE(replayed->LoadImage(**image).ok());
    }
    REQUIRE(log->Replay(0, [&](const auto& r) { return replayed->Replay(r); }).ok());
    REQUIRE(HashOf(*replayed) == reference.Hash());
    const auto [task, window] = *applied.begin();
    auto result = replayed->ApplyWindow(
        TaskId(task), window, LaneId(0),
        UpdateFor(WorkOf(1, 1, 0), shard->first_position(), shard->last_position()));
    REQUIRE(result.ok());
    REQUIRE(*result == Shard::WindowResult::kRepeated);
    const Step before = replayed->clock();
    replayed->CloseBelow(TaskId(2));
    result = replayed->ApplyWindow(
        TaskId(1), 99, LaneId(0),
        UpdateFor(WorkOf(1, 1, 0), shard->first_position(), shard->last_position()));
    // Its task is closed, so the window counts as applied: a resumed job may push it again.
    REQUIRE(result.ok());
    REQUIRE(*result == Shard::WindowResult::kRepeated);
    REQUIRE(replayed->clock() == before);
  }
}

// The log of a copy that was superseded may have a window under another number.
TEST_CASE("a copy takes a window once, whatever number it comes under", "[shard][async][chain]") {
  TempFolder folder;
  auto log = OpenLog(folder.path() + "/head"), own = OpenLog(folder.path() + "/copy");
  auto head = MakeShard({.synchronous = false, .log = log.get()});
  auto copy = MakeShard({.synchronous = false, .log = own.get()});
  for (const uint64_t window : {0, 2}) {
    auto result = head->ApplyWindow(
        TaskId(3), window, LaneId(0),
        UpdateFor(WorkOf(1, window, 0), head->first_position(), head->last_position()));
    REQUIRE(result.ok());
  }
  const auto take = [&](uint64_t ahead) {
    return log->Replay(0, [&](const storage::LogRecordView& r) {
      storage::LogRecordView record = r;
      record.header.step = Step(r.header.step.value + ahead);
      return copy->Take({record});
    });
  };
  REQUIRE(take(0).ok());
  REQUIRE(HashOf(*copy) == HashOf(*head));
  const uint64_t records = own->stats().records;
  CHECK(absl::IsAlreadyExists(take(2)));
  copy->CloseBelow(TaskId(9));  // nor one of a closed task
  CHECK(absl::IsAlreadyExists(take(2)));
  CHECK(copy->clock() == Step(2));
  CHECK(own->stats().records == records);
  CHECK(HashOf(*copy) == HashOf(*head));
}

}  // namespace
}  // namespace strata::server
