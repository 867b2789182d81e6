#include "server/shard/shard.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "proto/runtime/base/failpoints.h"
#include "server/table/gpu_memory.h"
#include "storage/eviction/kind.h"
#include "storage/rocks/tier.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::server {
namespace {

namespace fs = std::filesystem;

void Push(Shard& shard, uint64_t seed, uint64_t step, LaneNode node) {
  const GateAnswer a = shard.Contribute(
      Step(step), node,
      UpdateFor(NodeWork(seed, step, node), shard.first_position(), shard.last_position()));
  REQUIRE(a.verdict == GateVerdict::kHeld);
}

void Commit(Shard& shard) {
  auto done = shard.TryCommit();
  INFO(done.status());
  REQUIRE(done.ok());
  REQUIRE(*done);
}

// Runs a shard from its clock to `steps`, the root cut into `nodes`.
void Run(Shard& shard, uint64_t seed, uint64_t steps, const std::vector<LaneNode>& nodes) {
  for (uint64_t step = shard.clock().value + 1; step <= steps; ++step) {
    for (const LaneNode n : nodes) Push(shard, seed, step, n);
    Commit(shard);
  }
}

storage::HashSum HashOf(Shard& shard) {
  auto summary = shard.Summarize();
  REQUIRE(summary.ok());
  return summary->hash;
}

// Every row of the tables' keys, read as of `step`, equals the reference.
void CheckReads(Shard& shard, const Reference& reference, bool preimages) {
  const std::vector<TableSpec> tables = TestTables();
  std::map<Position, bool> positions[2];
  for (uint64_t k = 0; k < 60; ++k) positions[0][tables[0].PositionOfKey(Key(k))] = true;
  for (const TensorSpec& t : tables[1].tensors) {
    for (uint64_t r = 0; r < t.Rows(4); ++r) positions[1][Position(t.first.value + r)] = true;
  }
  for (uint32_t t = 0; t < 2; ++t) {
    std::vector<Position> asked;
    for (const auto& [p, unused] : positions[t]) {
      if (shard.first_position() <= p && p <= shard.last_position()) asked.push_back(p);
    }
    std::vector<float> out(asked.size() * tables[t].dim());
    const absl::Status s = preimages ? shard.ReadPreimages(TableId(t), asked, out.data())
                                     : shard.Read(TableId(t), asked, out.data());
    REQUIRE(s.ok());
    for (size_t i = 0; i < asked.size(); ++i) {
      const std::vector<float> want = reference.Weights(t, asked[i]);
      REQUIRE(std::memcmp(want.data(), out.data() + i * want.size(), want.size() * 4) == 0);
    }
  }
}

TEST_CASE("a shard becomes what the serial account says, whatever the grouping", "[shard]") {
  const auto references = References(1, 3, 6);
  const std::vector<std::vector<LaneNode>> groupings = {
      {{0, 3}}, {{0, 2}, {2, 3}}, {{2, 3}, {1, 2}, {0, 1}}, {{1, 2}, {2, 3}, {0, 1}}};
  for (const auto& nodes : groupings) {
    auto shard = MakeShard({});
    for (uint64_t step = 1; step <= 6; ++step) {
      Run(*shard, 1, step, nodes);
      REQUIRE(HashOf(*shard) == references[step].Hash());
      CheckReads(*shard, references[step], false);
      REQUIRE(shard->CheckPull(Step(step)) == PullVerdict::kServePreimage);
      CheckReads(*shard, references[step - 1], true);
    }
    REQUIRE(shard->refused_rows() == 0);
    REQUIRE(shard->counters().rows == references[6].rows());
  }
}

TEST_CASE("one shard or three, in one tier, two or three: one hash", "[shard]") {
  const auto references = References(2, 4, 8);
  TempFolder folder;
  for (const uint32_t shards : {1u, 3u}) {
    for (const auto& [limited, hbm] : std::vector<std::pair<bool, bool>>{
             {false, false}, {true, false}, {false, true}, {true, true}}) {
      auto tier =
          storage::OpenRocksTier({.directory = folder.path() + "/tier", .partitions = kPartitions});
      REQUIRE(tier.ok());
      storage::HashSum sum;
      uint64_t below = 0, left_hbm = 0, gathered = 0, updated = 0;
      for (uint32_t i = 0; i < shards; ++i) {
        ShardSetup setup;
        setup.id = i;
        setup.range = Ranges(shards)[i];
        setup.lanes = 4;
        setup.tier = tier->get();
        if (limited) setup.dram_bytes = LeastDramBytesPerServer(TestTables(), 1);
        if (hbm) {
          setup.hbm_bytes = LeastGpuBytesPerServer(TestTables(), storage::EvictionKind::kLrfu, 1);
        }
        auto shard = MakeShard(setup);
        for (uint64_t step = 1; step <= 8; ++step) {
          Run(*shard, 2, step, {{0, 2}, {2, 4}});
          CheckReads(*shard, references[step], false);
          CheckReads(*shard, references[step - 1], true);
        }
        sum += HashOf(*shard);
        below += shard->counters().written_back;
        left_hbm += shard->counters().hbm_evicted;
        gathered += shard->counters().hbm_gathered;
        updated += shard->counters().hbm_updated;
      }
      REQUIRE(sum == references[8].Hash());
      if (limited && !hbm && shards == 1) REQUIRE(below > 0);
      if (hbm && shards == 1) REQUIRE(left_hbm > 0);
      REQUIRE((gathered > 0) == hbm);
      REQUIRE((updated > 0) == hbm);
    }
  }
}

TEST_CASE("a limit below the least is refused with the formula", "[shard]") {
  const uint64_t least = LeastDramBytesPerServer(TestTables(), 2);
  const Position first(0), last(~0ull);
  REQUIRE(DivideMemory(TestTables(), first, last, least / 2, 2).ok());
  const auto refused = DivideMemory(TestTables(), first, last, 100, 2);
  REQUIRE(refused.status().code() == absl::StatusCode::kFailedPrecondition);
  REQUIRE(std::string(refused.status().message()).find(std::to_string(least)) != std::string::npos);
  // It is the least indeed, where one shard has all dense rows.
  REQUIRE_FALSE(DivideMemory(TestTables(), first, last, least / 2 - 1, 2).ok());
}

TEST_CASE("the least limit is the least, of many tables too", "[shard]") {
  const Position first(0), last(~0ull);
  for (const size_t hashed : {1, 5, 64}) {
    std::vector<TableSpec> tables;
    for (const TableSpec& t : TestTables()) {
      for (size_t i = 0; i < (t.kind == TableKind::kHashed ? hashed : 1); ++i) tables.push_back(t);
    }
    const uint64_t least = LeastDramBytesPerServer(tables, 1);
    INFO(tables.size() << " tables: " << least);
    REQUIRE(DivideMemory(tables, first, last, least, 1).ok());
    REQUIRE(DivideMemory(tables, first, last, 2 * least, 1).ok());
    REQUIRE_FALSE(DivideMemory(tables, first, last, least - 1, 1).ok());
  }
}

TEST_CASE("tables of unlike rows share by their weights, and none has too little", "[shard]") {
  const Position first(0), last(~0ull);
  std::vector<TableSpec> tables = TestTables();
  TableSpec wide = tables[0];
  wide.id = TableId(2);
  wide.segments[0].dim = 256;
  tables.push_back(wide);
  const uint64_t least = LeastDramBytesPerServer(tables, 1);
  // A wide table costs its own least, not that of each.
  const uint64_t alone = LeastDramBytesPerServer({tables[2]}, 1);
  CHECK(least > alone);
  CHECK(least < alone * 3 / 2);
  for (const uint32_t share : {1u, 9u, 1'000'000u}) {
    INFO("share " << share);
    tables[0].dram_share = share;
    CHECK(LeastDramBytesPerServer(tables, 1) == least);
    const auto smallest = DivideMemory(tables, first, last, least, 1);
    REQUIRE(smallest.ok());
    CHECK(smallest->limits[2] >= alone);
    CHECK_FALSE(DivideMemory(tables, first, last, least - 1, 1).ok());
    const auto large = DivideMemory(tables, first, last, uint64_t{1} << 40, 1);
    REQUIRE(large.ok());
    CHECK(large->limits[1] == 0);  // all dense rows are in memory
    CHECK(large->limits[0] / share == large->limits[2]);
  }
}

// Copies the log with its last segment cut to `bytes`.
void CopyCut(const std::string& from, const std::string& to, uint64_t bytes) {
  fs::remove_all(to);
  fs::copy(from, to);
  std::string last;
  for (const auto& e : fs::directory_iterator(to)) {
    const std::string name = e.path().filename();
    if (e.is_regular_file() && name.find("lock") == std::string::npos &&
        name.find("LOCK") == std::string::npos) {
      last = std::max(last, e.path().string());
    }
  }
  fs::resize_file(last, std::min<uint64_t>(bytes, fs::file_size(last)));
}

TEST_CASE("the log cut anywhere recovers to the serial account, and goes on", "[shard][recovery]") {
  TempFolder folder;
  const auto references = References(3, 3, 5);
  const std::string whole = folder.path() + "/whole";
  std::vector<uint64_t> sizes;  // of the log after each step
  {
    auto log = OpenLog(whole);
    auto shard = MakeShard({.log = log.get()});
    for (uint64_t step = 1; step <= 5; ++step) {
      Run(*shard, 3, step, {{0, 2}, {2, 3}});
      sizes.push_back(log->stats().bytes);
    }
  }
  std::vector<uint64_t> cuts;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const uint64_t begin = i == 0 ? sizes[0] / 3 : sizes[i - 1];
    for (const uint64_t c : {begin, begin + 1, (begin + sizes[i]) / 2, sizes[i] - 1, sizes[i]}) {
      cuts.push_back(c);
    }
  }
  std::mt19937_64 random(5);
  for (int i = 0; i < 20; ++i) cuts.push_back(sizes[0] / 2 + random() % (sizes[4] - sizes[0] / 2));
  for (const uint64_t cut : cuts) {
    const std::string copy = folder.path() + "/cut";
    CopyCut(whole, copy, cut);
    auto log = OpenLog(copy);
    auto shard = MakeShard({.log = log.get()});
    const absl::Status s = log->Replay(0, [&](const auto& r) { return shard->Replay(r); });
    INFO("cut at " << cut << ": " << s);
    REQUIRE(s.ok());
    uint64_t clock = 0;
    while (clock < 5 && sizes[clock] <= cut) ++clock;
    REQUIRE(shard->clock() == Step(clock));
    REQUIRE(HashOf(*shard) == references[clock].Hash());
    if (clock > 0) {
      REQUIRE(shard->CheckPull(Step(clock)) == PullVerdict::kServePreimage);
      CheckReads(*shard, references[clock - 1], true);
    }
    Run(*shard, 3, 5, {{0, 1}, {1, 2}, {2, 3}});
    REQUIRE(HashOf(*shard) == references[5].Hash());
    // And what was appended after the cut replays too.
    auto again = MakeShard({.log = log.get()});
    REQUIRE(log->Replay(0, [&](const auto& r) { return again->Replay(r); }).ok());
    REQUIRE(HashOf(*again) == references[5].Hash());
  }
}

TEST_CASE("image and the log after it; the image has the pre-images", "[shard][recovery]") {
  const uint64_t hbm_bytes =
      GENERATE(uint64_t{0}, LeastGpuBytesPerServer(TestTables(), storage::EvictionKind::kLrfu, 1));
  TempFolder folder;
  const auto references = References(4, 3, 6);
  auto log = OpenLog(folder.path() + "/log");
  auto shard = MakeShard({.log = log.get(), .hbm_bytes = hbm_bytes});
  Run(*shard, 4, 3, {{0, 3}});
  auto boundary = log->Rotate();
  REQUIRE(boundary.ok());
  REQUIRE(shard->WriteImage(folder.path() + "/image", *boundary).ok());
  REQUIRE(log->Trim(*boundary).ok());
  for (const uint64_t steps : {3, 4, 6}) {
    Run(*shard, 4, steps, {{0, 3}});
    auto reader = storage::ShardFileReader::Open(folder.path() + "/image");
    REQUIRE(reader.ok());
    auto back = MakeShard({.log = log.get(), .hbm_bytes = hbm_bytes});
    REQUIRE(back->LoadImage(**reader).ok());
    REQUIRE(back->clock() == Step(3));
    REQUIRE(back->CheckPull(Step(3)) == PullVerdict::kServePreimage);
    CheckReads(*back, references[2], true);
    const uint64_t from = (*reader)->header().log_segment;
    REQUIRE(log->Replay(from, [&](const auto& r) { return back->Replay(r); }).ok());
    REQUIRE(back->clock() == Step(steps));
    REQUIRE(HashOf(*back) == references[steps].Hash());
    CheckReads(*back, references[steps - 1], true);
  }
  // Without the image the log has a gap, which is told.
  auto lost = MakeShard({.log = log.get(), .hbm_bytes = hbm_bytes});
  REQUIRE(absl::IsDataLoss(log->Replay(0, [&](const auto& r) { return lost->Replay(r); })));
}

TEST_CASE("a checkpoint loads onto any number of shards", "[shard][checkpoint]") {
  TempFolder folder;
  const auto references = References(6, 3, 7);
  for (uint32_t from = 1; from <= 5; ++from) {
    storage::HashSum written;
    for (uint32_t i = 0; i < from; ++i) {
      auto shard = MakeShard({.range = Ranges(from)[i], .id = i});
      Run(*shard, 6, 4, {{0, 3}});
      auto summary =
          shard->WriteCheckpoint(folder.path() + "/" + std::to_string(i), shard->clock());
      REQUIRE(summary.ok());
      written += summary->hash;
    }
    REQUIRE(written == references[4].Hash());
    for (uint32_t to = 1; to <= 5; ++to) {
      storage::HashSum restored, later;
      for (uint32_t i = 0; i < to; ++i) {
        auto shard = MakeShard({.range = Ranges(to)[i], .id = i});
        for (uint32_t f = 0; f < from; ++f) {
          auto reader = storage::ShardFileReader::Open(folder.path() + "/" + std::to_string(f));
          REQUIRE(reader.ok());
          const absl::Status s = shard->Restore(**reader, Step(4));
          INFO(s);
          REQUIRE(s.ok());
        }
        REQUIRE(shard->clock() == Step(4));
        REQUIRE(shard->CheckPull(Step(4)) == PullVerdict::kTooOld);
        REQUIRE(shard->ResumeStep() == Step(5));
        restored += HashOf(*shard);
        Run(*shard, 6, 7, {{0, 3}});
        later += HashOf(*shard);
      }
      REQUIRE(restored == references[4].Hash());
      REQUIRE(later == references[7].Hash());
    }
  }
}

TEST_CASE("a gradient that is not finite changes nothing and bears no row", "[shard]") {
  const Position p = TestTables()[0].PositionOfKey(Key(1234));
  const float bad =
      GENERATE(std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity());
  auto shard = MakeShard({.lanes = 1});
  LaneWork work;
  work.examples = 2;
  work.sums[0][p] = {bad, bad, bad, bad, bad};
  shard->Contribute(Step(1), {0, 1},
                    UpdateFor(work, shard->first_position(), shard->last_position()));
  Commit(*shard);
  REQUIRE(shard->refused_rows() == 1);
  REQUIRE(shard->counters().rows == 0);
  // One good segment: the row is born, the refused one stays as it was at birth.
  work.sums[0][p] = {1, 1, 1, 1, bad};
  shard->Contribute(Step(2), {0, 1},
                    UpdateFor(work, shard->first_position(), shard->last_position()));
  Commit(*shard);
  REQUIRE(shard->refused_rows() == 2);
  REQUIRE(shard->counters().rows == 1);
  float out[5];
  REQUIRE(shard->Read(TableId(0), std::vector<Position>{p}, out).ok());
  REQUIRE(out[4] == 0.0f);
  REQUIRE(std::isfinite(out[0]));
}

TEST_CASE("disk errors at every stage: nothing lost, nothing twice", "[shard][faults]") {
  TempFolder folder;
  const auto references = References(8, 3, 3);
  for (const char* name :
       {"server.commit.append", "server.commit.appended", "server.commit.applied"}) {
    const std::string path = folder.path() + "/" + name;
    auto log = OpenLog(path);
    auto shard = MakeShard({.log = log.get()});
    Run(*shard, 8, 1, {{0, 3}});
    Push(*shard, 8, 2, {0, 2});
    Push(*shard, 8, 2, {2, 3});
    {
      ScopedFailpoint full(name, {.act = FailWith(absl::ResourceExhaustedError("disk full"))});
      for (int i = 0; i < 3; ++i) {
        auto committed = shard->TryCommit();
        REQUIRE(absl::IsResourceExhausted(committed.status()));
        REQUIRE(shard->clock() == Step(1));
        REQUIRE(shard->WantsCommit());
        // A retry of a contribution meanwhile changes nothing.
        const LaneNode node{0, 1};
        REQUIRE(shard
                    ->Contribute(Step(2), node,
                                 UpdateFor(NodeWork(8, 2, node), shard->first_position(),
                                           shard->last_position()))
                    .verdict == GateVerdict::kCovered);
      }
    }
    Commit(*shard);
    REQUIRE(HashOf(*shard) == references[2].Hash());
    CheckReads(*shard, references[1], true);
    Run(*shard, 8, 3, {{0, 3}});
    auto replayed = MakeShard({.log = log.get()});
    REQUIRE(log->Replay(0, [&](const auto& r) { return replayed->Replay(r); }).ok());
    REQUIRE(HashOf(*replayed) == references[3].Hash());
  }
  auto shard = MakeShard({});
  Run(*shard, 8, 2, {{0, 3}});
  for (const char* name : {"server.image", "server.checkpoint"}) {
    ScopedFailpoint full(name, {.act = FailWith(absl::ResourceExhaustedError("disk full"))});
    const absl::Status s = std::string(name) == "server.image"
                               ? shard->WriteImage(folder.path() + "/x", 0)
                               : shard->WriteCheckpoint(folder.path() + "/x", Step(2)).status();
    REQUIRE(absl::IsResourceExhausted(s));
    REQUIRE_FALSE(fs::exists(folder.path() + "/x"));
  }
  Run(*shard, 8, 3, {{0, 3}});
  REQUIRE(HashOf(*shard) == references[3].Hash());
}

TEST_CASE("an image or segment of something else is refused", "[shard][recovery]") {
  TempFolder folder;
  auto shard = MakeShard({.id = 1});
  REQUIRE(shard->WriteImage(folder.path() + "/image", 0).ok());
  auto reader = storage::ShardFileReader::Open(folder.path() + "/image");
  REQUIRE(reader.ok());
  REQUIRE(absl::IsFailedPrecondition(MakeShard({.id = 2})->LoadImage(**reader)));
  REQUIRE(MakeShard({.id = 1})->LoadImage(**reader).ok());
}

}  // namespace
}  // namespace strata::server
