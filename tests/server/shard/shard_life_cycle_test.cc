// Admission and removal in shards against an account that keeps rows in a map and looks at all of
// them at every step: the same rows, bit for bit, whatever the shards, tiers and restarts.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/shard/shard.h"
#include "server/table/memory.h"
#include "storage/rocks/tier.h"
#include "storage/row/hash.h"
#include "tests/server/shard/life_cycle_account.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::server {
namespace {

struct Setup {
  uint32_t shards = 1;
  bool limited = false;
  storage::RowTier* tier = nullptr;
  storage::UpdateLog* log = nullptr;
};

std::vector<std::unique_ptr<Shard>> MakeShards(const TableSpec& table, const Setup& setup) {
  std::vector<std::unique_ptr<Shard>> shards;
  for (uint32_t i = 0; i < setup.shards; ++i) {
    ShardOptions o;
    o.job = JobId(1);
    o.generation = Generation(1);
    o.map_epoch = MapEpoch(1);
    o.id = ShardId(i);
    o.partitioning = Partitioning(kPartitions);
    o.range = Ranges(setup.shards)[i];
    o.tables = {table};
    o.seed = kSeed;
    o.log = setup.log;
    const Position first = o.partitioning.First(o.range.first);
    const Position last = o.partitioning.Last(o.range.last);
    const uint64_t dram = setup.limited ? LeastDramBytesPerServer({table}, 1) : 0;
    auto memory = DivideMemory(o.tables, first, last, dram, 1);
    REQUIRE(memory.ok());
    auto rows = MakeTables(o.tables, first, last, *memory, setup.tier);
    REQUIRE(rows.ok());
    shards.push_back(std::make_unique<Shard>(std::move(o), *std::move(rows)));
  }
  return shards;
}

void Commit(Shard& shard, const Push& push, uint64_t step, uint64_t examples) {
  ShardUpdate update = UpdateOf(push, shard, examples);
  REQUIRE(shard.Contribute(Step(step), {0, 1}, std::move(update)).verdict == GateVerdict::kHeld);
  auto done = shard.TryCommit();
  INFO(done.status());
  REQUIRE(done.ok());
  REQUIRE(*done);
}

storage::HashSum HashOf(const std::vector<std::unique_ptr<Shard>>& shards) {
  storage::HashSum sum;
  for (const auto& s : shards) {
    auto summary = s->Summarize();
    REQUIRE(summary.ok());
    sum += summary->hash;
  }
  return sum;
}

// Every key that was ever pushed reads as the account says, after the step and before it.
void CheckReads(Shard& shard, const std::set<Position>& known, const Account& before,
                const Account& after) {
  std::vector<Position> asked;
  for (const Position p : known) {
    if (shard.first_position() <= p && p <= shard.last_position()) asked.push_back(p);
  }
  std::vector<float> now(asked.size() * kDim), then(asked.size() * kDim);
  REQUIRE(shard.Read(TableId(0), asked, now.data()).ok());
  REQUIRE(shard.ReadPreimages(TableId(0), asked, then.data()).ok());
  for (size_t i = 0; i < asked.size(); ++i) {
    REQUIRE(std::memcmp(after.Weights(asked[i]).data(), &now[i * kDim], kDim * 4) == 0);
    REQUIRE(std::memcmp(before.Weights(asked[i]).data(), &then[i * kDim], kDim * 4) == 0);
  }
}

// Steps first .. last of `shards`, checked at each step.
void Train(std::vector<std::unique_ptr<Shard>>& shards, const std::vector<Account>& accounts,
           const TableSpec& table, uint64_t first, uint64_t last) {
  std::set<Position> known;
  for (uint64_t step = 1; step <= last; ++step) {
    const Push push = PushOf(table, 1, step);
    for (const auto& [p, row] : push) known.insert(p);
    if (step < first) continue;
    for (auto& s : shards) {
      Commit(*s, push, step, 1 + step % 3);
      CheckReads(*s, known, accounts[step - 1], accounts[step]);
    }
    INFO("step " << step);
    REQUIRE(HashOf(shards) == accounts[step].Hash());
  }
}

TEST_CASE("rows live and die as the account says, whatever the shards and tiers",
          "[shard_life_cycle]") {
  TempFolder folder;
  int round = 0;
  for (const Case& c : Cases()) {
    INFO(c.name);
    const TableSpec table = Table(c.rules);
    const std::vector<Account> accounts = Accounts(table);
    const LifeCycleCounters& expected = accounts.back().counters;
    REQUIRE(expected.admitted > 0);
    REQUIRE(expected.refused > 0);
    for (const uint32_t count : {1u, 3u}) {
      for (const bool limited : {false, true}) {
        auto tier =
            storage::OpenRocksTier({.directory = folder.path() + "/tier-" + std::to_string(round++),
                                    .partitions = kPartitions});
        REQUIRE(tier.ok());
        auto shards = MakeShards(table, {count, limited, tier->get()});
        Train(shards, accounts, table, 1, kSteps);
        LifeCycleCounters sum;
        for (const auto& s : shards) sum += s->life_cycle();
        CHECK(sum == expected);
      }
    }
    // Every rule of the case did something.
    const RemovalRules& r = c.rules.removal;
    const auto removed = [&](RemovalRule rule) {
      return expected.removed[static_cast<size_t>(rule)] > 0;
    };
    CHECK(removed(RemovalRule::kTtl) == (r.ttl_steps > 0));
    CHECK(removed(RemovalRule::kCount) == (r.count_below > 0));
    CHECK(removed(RemovalRule::kScore) == r.scored);
    CHECK(removed(RemovalRule::kNorm) == (r.norm_below > 0));
    CHECK(removed(RemovalRule::kBytes) == (r.partition_bytes > 0));
  }
}

TEST_CASE("images, logs and checkpoints carry the life cycle", "[shard_life_cycle]") {
  int round = 0;
  for (const Case& c : Cases()) {
    INFO(c.name);
    const TableSpec table = Table(c.rules);
    const std::vector<Account> accounts = Accounts(table);
    for (const uint64_t died : {uint64_t{7}, uint64_t{20}, uint64_t{33}}) {
      TempFolder folder;
      const std::string image = folder.path() + "/image";
      {
        auto log = OpenLog(folder.path() + "/log");
        auto shards = MakeShards(table, {1, false, nullptr, log.get()});
        Train(shards, accounts, table, 1, died - 5);
        REQUIRE(shards[0]->WriteImage(image, 0).ok());
        Train(shards, accounts, table, died - 4, died);
      }
      // Recovered: an image, and the steps after it from the log.
      auto log = OpenLog(folder.path() + "/log");
      auto shards = MakeShards(table, {1, false, nullptr, log.get()});
      auto reader = storage::ShardFileReader::Open(image);
      REQUIRE(reader.ok());
      REQUIRE(shards[0]->LoadImage(**reader).ok());
      REQUIRE(log->Replay(0, [&](const storage::LogRecordView& r) { return shards[0]->Replay(r); })
                  .ok());
      REQUIRE(shards[0]->clock() == Step(died));
      std::set<Position> known;
      for (const auto& [p, row] : PushOf(table, 1, died)) known.insert(p);
      CheckReads(*shards[0], known, accounts[died - 1], accounts[died]);
      Train(shards, accounts, table, died + 1, died + 4);
      // A checkpoint of it, on other numbers of shards.
      const std::string path = folder.path() + "/checkpoint-" + std::to_string(round++);
      REQUIRE(shards[0]->WriteCheckpoint(path, Step(died + 4)).ok());
      auto checkpoint = storage::ShardFileReader::Open(path);
      REQUIRE(checkpoint.ok());
      auto others = MakeShards(table, {4});
      for (auto& s : others) REQUIRE(s->Restore(**checkpoint, Step(died + 4)).ok());
      Train(others, accounts, table, died + 5, kSteps);
    }
  }
}

}  // namespace
}  // namespace strata::server
