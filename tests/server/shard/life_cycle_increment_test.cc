// Increments of checkpoints where rows come and go: what they lead to is the account's rows, on any
// number of shards.
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "server/shard/shard.h"
#include "server/snapshot/shard_snapshot.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/row/hash.h"
#include "tests/server/shard/life_cycle_account.h"
#include "tests/server/shard/shard_fixture.h"
#include "tests/temp_folder.h"

namespace strata::server {
namespace {

void Commit(Shard& shard, const Push& push, uint64_t step) {
  ShardUpdate update = UpdateOf(push, shard, 1 + step % 3);
  REQUIRE(shard.Contribute(Step(step), {0, 1}, std::move(update)).verdict == GateVerdict::kHeld);
  auto done = shard.TryCommit();
  REQUIRE(done.ok());
  REQUIRE(*done);
}

TEST_CASE("increments erase the rows that life-cycle rules removed", "[shard_life_cycle]") {
  for (const Case& c : Cases()) {
    INFO(c.name);
    const TableSpec table = Table(c.rules);
    const std::vector<Account> accounts = Accounts(table);
    TempFolder folder;
    ShardSetup setup;
    setup.lanes = 1;
    setup.tables = {table};
    auto shard = MakeShard(setup);
    std::vector<std::string> files;
    std::optional<Step> base;
    uint64_t erased = 0;
    for (uint64_t step = 1; step <= kSteps; ++step) {
      Commit(*shard, PushOf(table, 1, step), step);
      if (step % 6 != 0) continue;
      auto snapshot = shard->SnapshotCheckpoint({.cut = Step(step), .base = base, .follow = true});
      REQUIRE(snapshot.ok());
      REQUIRE((*snapshot)->is_increment() == base.has_value());
      files.push_back(folder.path() + "/" + std::to_string(step));
      REQUIRE(WriteSnapshot(**snapshot, files.back()).ok());
      base = Step(step);
      for (const uint32_t count : {1u, 3u, 16u}) {
        INFO("step " << step << " on " << count << " shards");
        storage::HashSum sum;
        for (uint32_t i = 0; i < count; ++i) {
          setup.range = Ranges(count)[i];
          setup.id = i;
          auto restored = MakeShard(setup);
          for (const std::string& path : files) {
            auto file = storage::ShardFileReader::Open(path);
            REQUIRE(file.ok());
            REQUIRE(restored->Restore(**file, Step(step)).ok());
          }
          sum += restored->Summarize()->hash;
        }
        REQUIRE(sum == accounts[step].Hash());
      }
      auto newest = storage::ShardFileReader::Open(files.back());
      REQUIRE(newest.ok());
      REQUIRE((*newest)
                  ->ReadErased(table.id, Ranges(1)[0],
                               [&](std::span<const Position> positions) {
                                 erased += positions.size();
                                 return absl::OkStatus();
                               })
                  .ok());
    }
    CHECK(erased > 10);
  }
}

}  // namespace
}  // namespace strata::server
